# Every target sets up what it needs: a virtual environment in .venv, and the project in it.
PYTHON ?= python3
DATASET ?= tic-tac-toe
SPLITS ?= 2
OUT ?= out
BIN := .venv/bin
# One thread a process: the work is spread over processes, and more threads than cores slow it down.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.PHONY: table1 test lint format docs datasets fingerprint clean

table1: .venv/installed  ## A piece of Table 1, from raw data: DATASET, SPLITS
	mkdir -p $(OUT)
	$(BIN)/papermill notebooks/table1.ipynb $(OUT)/table1.ipynb -p dataset $(DATASET) -p n_splits $(SPLITS) \
	    -p results_dir $(OUT)/results -p figures_dir $(OUT)
	@echo "In $(OUT)/: the executed notebook, the table as csv and LaTeX, and results/ with a row for every fit."

test: .venv/installed lint  ## All tests; WDRLR_DATA adds those of the data sets that are not shipped
	$(BIN)/python -m pytest --numprocesses auto

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/installed  ## The documentation, in docs/_build/html
	$(BIN)/python -m sphinx --quiet --fail-on-warning docs docs/_build/html

datasets: .venv/installed  ## The sizes of the data sets beside the paper's
	$(BIN)/python -m wdrlr.data_prep

fingerprint: .venv/installed  ## Hashes of the coefficients of some 300 fits; once there, compared with. Delete them to begin anew
	mkdir -p $(OUT)
	$(BIN)/python -m benchmarks.fingerprint \
	    $(if $(wildcard $(OUT)/fingerprint.csv),--against,--output) $(OUT)/fingerprint.csv

clean:
	rm -rf .venv build dist *.egg-info out docs/_build docs/notebooks

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@
