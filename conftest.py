"""Examples in docstrings of modules whose library is not installed are left out; the tests of these skip by name."""

from importlib.util import find_spec

ADAPTERS = {"aeon": "aeon", "aeon_early": "aeon", "sktime": "sktime"}
collect_ignore = [f"src/qornn/estimators/{file}.py" for file, library in ADAPTERS.items() if find_spec(library) is None]
