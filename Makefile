# Two commands: `make demo` shows the main job, `make test` checks everything. Each does all its set-up.
PYTHON ?= python3
BIN := .venv/bin
# Real data, when a copy is at hand; tests that need it are skipped by name otherwise.
export QORNN_DATA ?= $(if $(wildcard ../shared/data/mnist),$(abspath ../shared/data),)
export PIP_CONSTRAINT := $(abspath constraints.txt)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test clean

demo: .venv/ready
	$(BIN)/python examples/demo.py --out demo

test: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -e '.[dev]'
	touch $@

clean:
	rm -rf .venv demo
