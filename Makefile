# Everything runs in .venv; the only things needed beforehand are Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# Threads that wait give their core away: on a busy machine spinning ones make small tensor operations many times slower.
export OMP_WAIT_POLICY ?= PASSIVE
# One more process of tests than cores: some wait for other processes and leave theirs idle.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

.PHONY: help install test lint docs matrix packages bench reproduce clean
help:            ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

install: $(STAMP) ## create .venv and install the project
$(STAMP): pyproject.toml study/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[dev,docs,examples]' -e './study[ray,tensorboard]'
	@touch $(STAMP)

lint: install    ## run the linter, the check of the format, and the type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint       ## run the linter, the type checker and all tests
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal

docs: install    ## build the documentation site in docs/_build/html
	PULLBACK_QUIET=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

matrix: install  ## run the tests of what is private to Numba and PyTorch with several releases (ARGS=--write: docs/versions.md)
	$(BIN)/python -m tests.matrix $(ARGS)

packages: install ## build wheels and sdists, and use them in new environments (ARGS=--sdist)
	$(BIN)/python -m tests.packages $(ARGS)

bench: install   ## run the benchmarks against the installed peers (ARGS=--quick)
	$(BIN)/python -m benchmarks $(ARGS)

reproduce:       ## print the tables of the kept runs beside the paper's, and train 3 of these runs again (ARGS="--count 10"; QUICK=1: the small study)
	@$(MAKE) --no-print-directory install
ifdef QUICK
	@echo "training small models of all 13 rows; figures go to figures/"
	$(BIN)/pullback reproduce table1 --quick
	$(BIN)/pullback reproduce curves --quick
	$(BIN)/pullback reproduce steps --quick
else
	$(BIN)/pullback reproduce check $(ARGS)
endif

clean:           ## remove .venv and caches
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache
