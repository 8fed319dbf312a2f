"""Print MLPerf Tiny's features of clips: python examples/keywords/features.py CLIP.wav ...

qornn.fit.mfcc makes them and says how.
"""

from __future__ import annotations

import sys

from qornn.errors import QornnError
from qornn.fit.mfcc import mfcc, quantized, read_wav


def main() -> None:
    try:
        for path in sys.argv[1:]:
            print(f"{path}:\n{quantized(mfcc(read_wav(path)))}")
    except QornnError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
