import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # strategies.py, which the tests here share
