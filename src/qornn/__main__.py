"""`python -m qornn`, which torchrun needs: `torchrun --nproc-per-node 2 -m qornn train …`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:  # -m puts the working folder first, and a numpy.py may lie there among downloaded data
        sys.path.pop(0)
    from qornn.cli import main

    main()
