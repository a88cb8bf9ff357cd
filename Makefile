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

.PHONY: table1 test lint format docs claims datasets fingerprint dist constraints clean

table1: .venv/installed  ## A piece of Table 1, from raw data: DATASET, SPLITS
	mkdir -p $(OUT)
	$(BIN)/papermill notebooks/table1.ipynb $(OUT)/table1.ipynb -p dataset $(DATASET) -p n_splits $(SPLITS) -p compute_missing True \
	    -p results_dir $(OUT)/results -p figures_dir $(OUT)
	@echo "In $(OUT)/: the executed notebook, the table as csv and LaTeX, and results/ with a row for every fit."

test: .venv/installed lint  ## All tests; WDRLR_DATA adds those of the data sets that are not shipped
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

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

claims: .venv/installed  ## The README's tables of claims and errors, from what the notebooks claims and table1 have saved
	$(BIN)/python -m wdrlr.paper.referee

datasets: .venv/installed  ## The sizes of the data sets beside the paper's
	$(BIN)/python -m wdrlr.data_prep

fingerprint: .venv/installed  ## Hashes of the coefficients of some 300 fits; once there, compared with. Delete them to begin anew
	mkdir -p $(OUT)
	$(BIN)/python -m benchmarks.fingerprint \
	    $(if $(wildcard $(OUT)/fingerprint.csv),--against,--output) $(OUT)/fingerprint.csv

dist: .venv/installed  ## The source distribution and the wheel, checked, in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m check_wheel_contents dist/*.whl

constraints: .venv/installed  ## constraints.txt: the versions in .venv, which computed the rows, and those of the other extras
	mkdir -p $(OUT)
	$(BIN)/python -m pip freeze --all --exclude-editable > $(OUT)/installed.txt
	$(PYTHON) -m venv --clear $(OUT)/full
	$(OUT)/full/bin/python -m pip install --quiet --constraint $(OUT)/installed.txt --editable '.[all,test]'
	$(BIN)/python -c "import platform as p; print('#', p.python_implementation(), p.python_version(), p.system(), p.machine())" \
	    > constraints.txt
	$(OUT)/full/bin/python -m pip freeze --all --exclude pip --exclude-editable >> constraints.txt
	rm -rf $(OUT)/full

clean:
	rm -rf .venv build dist *.egg-info out docs/_build docs/notebooks

.venv/installed: pyproject.toml setup.py
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@
