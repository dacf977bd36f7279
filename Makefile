# make demo    fits a Gaussian mixture with a C objective; writes build/gmm.png
# make test    the tests, on the oldest and (where there is one) a newer Python, and the wheel outside the checkout
# make lint    formatting, types, import order
# make bench   time of a gradient over time of its function, beside published figures
# make fuzz    the generated programs, many more of them
#
# Each does its own set-up: a machine needs Python 3.11 or newer, g++ and make. PYTHON names another interpreter.

PYTHON ?= $(shell .ci/find-python 3.11)
NEXT_PYTHON ?= $(shell .ci/find-python next)
PYTEST_ARGS ?= -n auto

VENV := .venv
NEXT := .venv-next
BUILT_FROM := pyproject.toml CMakeLists.txt $(wildcard csrc/*)

.PHONY: demo test test-main test-next test-wheel lint format bench fuzz clean
.NOTPARALLEL:
.DEFAULT_GOAL := test

# One stamp per environment and extra: the second run installs nothing.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON to its path" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip

$(VENV)/.installed-%: $(BUILT_FROM) | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable ".[$*]"
	@touch $@

$(NEXT)/.installed-test: $(BUILT_FROM)
	test -x $(NEXT)/bin/python || $(NEXT_PYTHON) -m venv $(NEXT)
	$(NEXT)/bin/python -m pip install --quiet --upgrade pip
	$(NEXT)/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable ".[test]"
	@touch $@

demo: $(VENV)/.installed-demo
	$(VENV)/bin/python examples/gmm/demo.py --picture build/gmm.png

test: test-wheel test-next test-main

test-main: $(VENV)/.installed-test
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

ifeq ($(NEXT_PYTHON),)
test-next:
	@echo "left out: the tests on Python 3.12 or newer with the newest JAX (no such interpreter was found)"
	@test "$(CI)" != true || { echo "in CI that is a failure" >&2; exit 1; }
else
test-next: $(NEXT)/.installed-test
	$(NEXT)/bin/python -m pytest $(PYTEST_ARGS)
endif

test-wheel: $(VENV)/.installed-test
	.ci/test-wheel $(VENV)/bin/python

lint: $(VENV)/.installed-lint $(VENV)/.installed-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/clang-format --dry-run --Werror $$(git ls-files '*.c' '*.cc' '*.cpp' '*.h')
	$(VENV)/bin/lint-imports --no-logo
	$(VENV)/bin/pyright

format: $(VENV)/.installed-lint
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $$(git ls-files '*.c' '*.cc' '*.cpp' '*.h')

bench: $(VENV)/.installed-bench
	$(VENV)/bin/python -m benchmarks

fuzz: $(VENV)/.installed-test
	$(VENV)/bin/python -m pytest tests/engine/test_generated.py --hypothesis-profile=long $(PYTEST_ARGS)

clean:
	rm -rf build $(VENV) $(NEXT)
