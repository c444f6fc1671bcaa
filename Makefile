# Two commands are all a newcomer needs:  make tour   and   make test
# Both make a virtual environment in .venv the first time and install what they need into it.
PYTHON ?= python3
BIN := .venv/bin
# Tests run on all cores: one process each.
WORKERS ?= auto
# A module is compiled once: every second process of the tests would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
# In a container one is often root, which JupyterLab wants to be told.
LABFLAGS := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help tour test quick check lint types format docs wheel clean

help:                      ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## / - /; s/^/make /'

tour: .venv/lab            ## open the tour in JupyterLab (no GPU needed)
	$(BIN)/jupyter trust notebooks/*.ipynb
	$(BIN)/jupyter lab $(LABFLAGS) notebooks/00_tour.ipynb

test: .venv/test           ## run the test suite (no GPU needed)
	$(BIN)/python -m pytest -n $(WORKERS)

quick: .venv/test          ## the quick tests: about a minute on two cores
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow"

check: lint types test     ## everything CI runs

lint: .venv/test           ## ruff; biome for the front end's JavaScript and CSS
	$(BIN)/ruff check .
	$(BIN)/biome lint --error-on-warnings

types: .venv/test          ## pyright; deno (TypeScript's checker) for the front end's JavaScript
	$(BIN)/pyright
	$(BIN)/deno check --no-remote --no-npm explorer/app/static/widget.js

format: .venv/test         ## let ruff fix what it can
	$(BIN)/ruff check --fix-only .

docs: .venv/test           ## rewrite the generated parts of the documentation and the notebooks' outputs
	$(BIN)/python docs/make_reference.py
	$(BIN)/python -m explorer.app.typescript
	$(BIN)/python docs/run_snippets.py
	$(BIN)/python docs/run_notebooks.py

wheel: .venv/test          ## build a wheel into dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

.venv/lab: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[lab]"
	touch $@

.venv/test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

clean:                     ## remove what the commands above made, the virtual environment too
	rm -rf .venv dist .pytest_cache .ruff_cache .hypothesis
