# Each target makes .venv itself, and only when its inputs changed.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

.PHONY: demo up test check format lint types layers bench clean

demo: .venv/ready
	$(BIN)/outlast demo

up: .venv/ready
	$(BIN)/outlast up

test: .venv/ready
	$(BIN)/pytest

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: .venv/ready
	$(BIN)/python -m tests.load.overhead
	$(BIN)/python -m tests.load.memory

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .coverage*

.venv/ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "outlast needs Python 3.11 or newer; set PYTHON=/path/to/python"; exit 2; }
	$(PYTHON) -m venv --clear .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[sim,dev]'
	@touch $@
