# Everything is done by tasks.py, so that `python tasks.py book` does the same on Windows.
# Extra arguments: make test ARGS=--slow, make lab ARGS=svm
PYTHON ?= python3
ARGS ?=

TASKS = book test serve lab notebooks edit sync bench mutate trouble machine clean

.PHONY: help $(TASKS)

help:
	@$(PYTHON) tasks.py --help

$(TASKS):
	@$(PYTHON) tasks.py $@ $(ARGS)
