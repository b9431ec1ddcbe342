# Two commands: `make demo` shows the library at work, `make test` runs every check (`make test-all` at length).
# Both need only python3 and make; everything else goes into .venv, at the versions of requirements.lock.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
PORTABLE := $(VENV)/.portable
READY := $(VENV)/.ready
BUILT := $(VENV)/.built
SOURCES := setup.py $(wildcard src/onepass/engine/*.py src/onepass/engine/*.pxd)
# Without --no-compile pip spends most of its time on bytecode; Python writes what is imported by itself.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes
WHEEL = $(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check -c build/constraints.txt
SMOKE = cd dist && env -i HOME="$$HOME" PATH="$(CURDIR)/$(VENV)-wheel/bin" python ../scripts/smoke.py
RESOLVE := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header \
    --upgrade --quiet

# Tests start hundreds of Python processes: without bytecode each would compile the library's source again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo build test test-peers test-all docs bench wheel format lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BASE): requirements.lock requirements-demo.lock requirements-compiler.lock
	@$(PYTHON) -c 'import sys; sys.exit("onepass needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "Installing the packages of requirements-demo.lock into $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(INSTALL) -r requirements-demo.lock
	@$(BIN)/python -c 'import build_backend, sys; sys.exit(not build_backend.has_compiler())' || $(INSTALL) -r requirements-compiler.lock
	@touch $@

$(PORTABLE): $(BASE) $(SOURCES)
	@echo "Compiling the engine ..."
	@$(BIN)/python setup.py --quiet build_ext --inplace --portable
	@touch $@

$(READY): $(BASE)
	$(INSTALL) -r requirements.lock
	@touch $@

# Compiled in place first: the installation, which only points here, then finds nothing left to compile.
$(BUILT): $(READY) $(SOURCES) pyproject.toml
	$(BIN)/python setup.py --quiet build_ext --inplace
	@test -e $@ -a ! pyproject.toml -nt $@ || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(PORTABLE) $@

build: $(BUILT)  ## compile what has changed of the engine

# Run from the sources: the demo needs no installed package, and no code for newer processors.
demo: $(PORTABLE)  ## every experiment, figure and number of the paper, into reproduction/report.html
	@PYTHONPATH=src $(BIN)/python -m onepass reproduce --out reproduction

test: $(BUILT)  ## lint, types, layers and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --dist worksteal

$(VENV)-peers/.ready: requirements-peers.lock
	$(PYTHON) -m venv --clear $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-peers.lock
	@touch $@

test-peers: $(BUILT) $(VENV)-peers/.ready  ## tests with libraries that need other versions, in an environment of their own
	PYTHONPATH=src $(VENV)-peers/bin/python -m pytest $(foreach one,skpro sktime, \
	    tests/integrations/$(one) src/onepass/integrations/$(one) docs/how-to/$(one).md)

test-all: test test-peers  ## the same, and the long versions of tests
	$(BIN)/pytest -n auto --dist worksteal -m 'slow or hypothesis' --hypothesis-profile long

$(VENV)/.docs: $(READY) requirements-docs.lock
	$(INSTALL) -r requirements-docs.lock
	@touch $@

docs: $(BUILT) $(VENV)/.docs  ## the site, into build/site
	rm -rf docs/reference/api/generated
	$(BIN)/python -m sphinx -E -W --keep-going -q -d build/doctrees docs build/site

$(VENV)/.bench: $(READY) requirements-bench.lock
	$(INSTALL) -r requirements-bench.lock
	@touch $@

bench: $(BUILT) $(VENV)/.bench  ## time the engine, compare with others, and measure what may be trusted
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.one_row
	$(BIN)/python -m benchmarks.distributed
	$(BIN)/python -m benchmarks.fleet
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m benchmarks.shipped
	$(BIN)/python -m benchmarks.trust
	$(BIN)/python -m benchmarks.exactness
	$(BIN)/python -m benchmarks.misbehaving
	$(BIN)/python -m benchmarks.intervals
	$(BIN)/python -m benchmarks.wide
	$(BIN)/python -m benchmarks.river
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.served_row
	$(BIN)/python -m benchmarks.hostile

wheel: $(BUILT)  ## build wheel and sdist into dist/, and try the wheel in an empty environment without a compiler
	rm -rf dist
	$(BIN)/python -m build --quiet --no-isolation
	$(PYTHON) -m venv --clear $(VENV)-wheel
	grep == requirements.lock | grep -v '^ ' | tr -d '\\' > build/constraints.txt
	$(WHEEL) "$$(echo dist/*.whl)"
	$(SMOKE) core
	$(WHEEL) "$$(echo dist/*.whl)[serve,client,plots]"
	$(SMOKE) readme commands
	$(BIN)/python scripts/try_recipe.py dist/*.tar.gz -c build/constraints.txt

format: $(READY)  ## mend what the linter can mend by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:  ## resolve the dependencies anew into requirements*.lock (needs uv)
	uv pip compile pyproject.toml --extra dev $(RESOLVE) -o requirements.lock
	uv pip compile pyproject.toml --extra bench $(RESOLVE) -c requirements.lock -o requirements-bench.lock
	uv pip compile pyproject.toml --extra docs $(RESOLVE) -c requirements.lock -o requirements-docs.lock
	uv pip compile pyproject.toml --extra serve --extra postgres $(RESOLVE) -c requirements.lock -o requirements-serve.lock
	printf '%s\n' hypothesis pytest | uv pip compile pyproject.toml - --extra skpro --extra sktime --extra postgres $(RESOLVE) -o requirements-peers.lock
	printf '%s\n' setuptools Cython scipy | uv pip compile - $(RESOLVE) -c requirements.lock -o requirements-build.lock
	uv pip compile pyproject.toml requirements-build.lock --extra cli --extra plots $(RESOLVE) -c requirements.lock -o requirements-demo.lock
	echo ziglang | uv pip compile - $(RESOLVE) -o requirements-compiler.lock

clean:  ## remove the environment and what tools left behind
	rm -rf $(VENV) $(VENV)-wheel $(VENV)-peers reproduction .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find src -name '*.so' -delete
