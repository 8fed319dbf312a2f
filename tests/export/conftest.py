"""Where the programs that the tests of exports share are found."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # calling.py
sys.path.append(str(Path(__file__).parents[1] / "verify"))  # c_programs.py
sys.path.append(str(Path(__file__).parents[1] / "integer"))  # strategies.py
