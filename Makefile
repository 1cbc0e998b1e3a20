# Everything is installed into .venv; make and Python 3.11+ are all that is needed.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
SOURCES := src tests bench

.PHONY: setup serve test test-reference test-schema fmt lint types bench bench-quality bench-scale requirements clean

setup: .venv/runtime.stamp

serve: .venv/runtime.stamp
	@$(BIN)/kb serve

test: .venv/dev.stamp
	$(BIN)/pytest

# The same model in sentence-transformers, as the reference. It needs torch, so it has an environment of its own.
test-reference: .venv-reference/stamp
	.venv-reference/bin/pytest tests/reference

# The engine against calls made up from its own description: the suite makes up a few, this some 20,000.
test-schema: .venv/dev.stamp
	KB_TEST_EXAMPLES=1000 $(BIN)/pytest -s tests/schema

fmt: .venv/dev.stamp
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

lint: .venv/dev.stamp
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports

types: .venv/dev.stamp
	$(BIN)/mypy

bench: .venv-reference/stamp
	.venv-reference/bin/python -m bench.embedding
	.venv-reference/bin/python -m bench.engine

bench-scale: .venv/dev.stamp
	$(BIN)/python -m bench.scale

bench-quality: .venv/dev.stamp
	$(BIN)/python -m bench.quality

# What pyproject.toml asks for, pinned with hashes for every platform.
requirements: .venv/dev.stamp
	$(UV) pip compile -q --universal --generate-hashes --python-version 3.11 --no-header --no-emit-index-url \
	  --no-emit-find-links pyproject.toml --extra engine --extra gateway --extra cpu -o requirements/runtime.txt
	$(UV) pip compile -q --universal --generate-hashes --python-version 3.11 --no-header --no-emit-index-url \
	  --no-emit-find-links pyproject.toml --extra engine --extra gateway --extra cpu --extra dev -o requirements/dev.txt

clean:
	rm -rf .venv .venv-reference .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/uv:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check uv

.venv/runtime.stamp: requirements/runtime.txt pyproject.toml | .venv/bin/uv
	$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/runtime.txt
	$(UV) pip install -q --python $(BIN)/python --no-deps -e .
	@touch $@

.venv/dev.stamp: requirements/dev.txt pyproject.toml | .venv/bin/uv
	$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(UV) pip install -q --python $(BIN)/python --no-deps -e .
	@touch $@ .venv/runtime.stamp

# pip, not uv, installs torch: pip also looks where a machine keeps a build of its own, without CUDA.
.venv-reference/stamp: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv-reference
	.venv-reference/bin/python -m pip install -q --disable-pip-version-check uv torch==2.13.0
	.venv-reference/bin/uv pip install -q --python .venv-reference/bin/python -r requirements/dev.txt
	.venv-reference/bin/uv pip install -q --python .venv-reference/bin/python 'sentence-transformers>=6.2,<7'
	.venv-reference/bin/uv pip install -q --python .venv-reference/bin/python --no-deps -e .
	@touch $@
