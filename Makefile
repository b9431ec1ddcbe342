# Two commands: `make demo` shows the library at work, `make test` runs every check (`make test-all` at length).
# Both need only python3 and make; everything else goes into .venv, at the versions of requirements.lock.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RESOLVE := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header \
    --upgrade --quiet

.PHONY: help demo test test-all bench format lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("onepass needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)  ## every experiment, figure and number of the paper, into reproduction/report.html
	$(BIN)/onepass reproduce --out reproduction

test: $(READY)  ## lint, types, layers and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto

test-all: test  ## the same, and the long versions of the slow tests
	$(BIN)/pytest -n auto -m slow

$(VENV)/.bench: $(READY) requirements-bench.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

bench: $(VENV)/.bench  ## time the engine against bare arithmetic and against others
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.distributed
	$(BIN)/python -m benchmarks.fleet
	$(BIN)/python -m benchmarks.tables

format: $(READY)  ## mend what the linter can mend by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:  ## resolve the dependencies anew into requirements.lock (needs uv)
	uv pip compile pyproject.toml --extra dev --extra river --extra dask $(RESOLVE) -o requirements.lock
	uv pip compile pyproject.toml --extra bench $(RESOLVE) -c requirements.lock -o requirements-bench.lock

clean:  ## remove the environment and what tools left behind
	rm -rf $(VENV) reproduction .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
