# Two commands are all a newcomer needs:  make tour   and   make test
# Both make a virtual environment in .venv the first time and install what they need into it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: tour test check lint types format clean

tour: .venv/lab            ## open the tour in JupyterLab (no GPU needed)
	$(BIN)/jupyter lab notebooks/00_tour.ipynb

test: .venv/test           ## run the test suite (no GPU needed)
	$(BIN)/python -m pytest

check: lint types test     ## everything CI runs

lint: .venv/test
	$(BIN)/ruff check .

types: .venv/test
	$(BIN)/pyright

format: .venv/test
	$(BIN)/ruff check --fix-only .

.venv/lab: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[lab]"
	touch $@

.venv/test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache
