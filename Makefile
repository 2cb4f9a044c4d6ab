# The four commands a newcomer needs. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test lint system

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo "installing into $(VENV): about 2 GB, some minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[client,test,dev]'
	@touch $@

demo: setup  ## start the service with a synthetic camera and watch its first anticipations
	@$(BIN)/streamer serve --demo

test: setup system  ## the whole suite
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

system:
	@sh tests/system_packages.sh
