# `make demo` and `make test` do all their own set-up, from nothing but python3 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB := $(VENV)/.lab
SERVE := $(VENV)/.serve
ALL := $(VENV)/.installed
# Compiled kernels are used from several test processes; two are what a small machine has.
WORKERS ?= 2

# Each process does its own small sums: threads of a linear algebra library would only wait for one another.
unit check-slow check-torch: export OPENBLAS_NUM_THREADS = 1

.PHONY: setup demo serve test lint types unit check-slow check-torch bench audit docs wheel clean

setup: $(ALL)

# What the demonstration needs, and no more: it should be there within a minute.
$(LAB): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[lab]'
	touch $@

$(ALL): $(LAB)
	$(BIN)/pip install --quiet --editable '.[lab,streams,river,sklearn,jax,cluster,ledger,kafka,serve,openfeature,test,docs]'
	touch $@

# What the service needs, and no more.
$(SERVE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[serve]'
	touch $@

# The service on this machine, from nothing: it prints a key, the address of the dashboard, and what to try first.
serve: $(SERVE)
	mkdir -p out
	$(BIN)/reticent serve --store out/service.db --ledger out/privacy.db

demo: $(LAB)
	$(BIN)/reticent demo

test: lint types unit

lint: setup
	$(BIN)/ruff check --no-cache src tests bench
	$(BIN)/ruff format --no-cache --check src tests bench
	$(BIN)/lint-imports --no-cache --no-logo

types: setup
	$(BIN)/mypy

# All kernels are compiled first, each by one process: the workers of pytest would each compile the same ones.
unit: setup
	$(BIN)/reticent warm --jobs $(WORKERS)
	$(BIN)/pytest -m 'not slow' -n $(WORKERS) --dist worksteal

check-slow: setup
	$(BIN)/pip install --quiet --editable '.[fuzz]'
	$(BIN)/pytest -m slow -n $(WORKERS) --dist worksteal --timeout 5400

# PyTorch is large: what needs it is tested here only. PyTorch's own index has builds for the CPU alone, which are much
# smaller; to take them, give its address as TORCH_INDEX.
TORCH_INDEX ?=
check-torch: setup
	$(BIN)/pip install --quiet $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable '.[torch]'
	$(BIN)/python -c 'import torch; print("PyTorch", torch.__version__)'
	$(BIN)/pytest tests/losses/test_from_functions.py tests/losses/test_stacked.py tests/losses/test_probe.py src/reticent/losses/_from_torch.py

# Every figure again, into bench/results; `make bench-plans` is one script of them.
BENCHES := $(patsubst bench/%.py,bench-%,$(filter-out bench/_% bench/minorants.py,$(wildcard bench/*.py)))
BENCH := $(VENV)/.bench
bench: $(BENCHES) bench-tables

$(BENCH): $(ALL)
	$(BIN)/pip install --quiet --editable '.[bench]'
	touch $@

bench-%: $(BENCH)
	$(BIN)/python bench/$*.py

bench-tables: setup
	$(BIN)/reticent tables --out out/tables
	cp out/tables/tables.md out/tables/tables.json bench/results
	$(BIN)/python bench/guides.py --redraw maps

audit: bench-audit

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'open site/index.html'

# Both distributions, in dist; then the wheel in a new environment outside this tree, without extras and with the command line.
wheel:
	rm -rf dist
	set -e; new=$$(mktemp -d); trap 'rm -rf "$$new"' EXIT; \
	$(PYTHON) -m venv "$$new/build"; \
	"$$new/build/bin/pip" install --quiet 'build>=1.2'; \
	"$$new/build/bin/python" -m build --outdir dist . >"$$new/log" 2>&1 || { cat "$$new/log"; exit 1; }; \
	$(PYTHON) -m venv "$$new/env"; \
	for extra in '' '[lab]'; do \
		"$$new/env/bin/pip" install --quiet "$$(echo dist/*.whl)$$extra"; \
		$(PYTHON) .ci/quick_start.py "$$new/env"; \
	done
	@ls dist

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis
