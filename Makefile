# make demo    fits a Gaussian mixture with a C objective; writes build/gmm.png
# make test    the tests, on the oldest and (where there is one) a newer Python, and the wheel outside the checkout
# make docs    the documentation as a site: build/docs/index.html
# make quick   the tests nearest to the files that changed, for two minutes at most
# make lint    formatting, types, import order
# make bench   times gradients beside their functions, adjoints by hand and jax.numpy: docs/measured.md
# make fuzz    the generated programs, many more of them
# make gpu-test, make gpu-bench    the same on a GPU, without a network: GPU_PYTHON has JAX with CUDA, llvmlite, ziglang,
#              platformdirs, pytest, pybind11 and scikit-build-core
# make test-aarch64    the core of the tests under qemu, on Linux 6.7 or newer with qemu-user-static, mmdebstrap and
#              g++-aarch64-linux-gnu; PYTHON is a 3.11
# make table   what JAX can do to a kernel, from the tests of it: docs/transformations.md and the table in README.md
#
# Each does its own set-up: a machine needs Python 3.11 or newer, g++ and make. PYTHON names another interpreter.

PYTHON ?= $(shell .ci/find-python 3.11)
NEXT_PYTHON ?= $(shell .ci/find-python next)
# Each process takes files that stand together, as what one test compiles serves those beside it.
PYTEST_ARGS ?= -n auto --dist worksteal
# Many tests start Python: what one process has compiled of the package the others read.
export PYTHONDONTWRITEBYTECODE :=
GPU_PYTHON ?= python3

# What another JAX or Python can change; the rules, the IR, the analyses and code generation are tested once, on the
# oldest. Of launches on a GPU: what JAX's transformations make of one. Of each test every sixth row: they differ in the
# kernel, which is no matter of JAX either. Of the kernels of tests/jax that leaves one by rows and one by columns with the
# engine, and a complex one without.
LAUNCHED := forward_mode vmap_is_one_launch inout_leaves_the_argument_alone an_empty_batch_launches_nothing \
  second_derivatives_and_batches_of_them a_call_is_loaded_once_and_launched_every_time
NEXT_TESTS ?= $(addprefix tests/,jax codegen/test_plain_functions.py codegen/test_jit.py packaging/test_docs.py \
  packaging/test_examples.py packaging/test_readme.py packaging/test_wheel.py signature tools cuda/test_launch.py \
  $(addprefix cuda/test_launcher.py::test_,$(LAUNCHED)) cuda/test_stages.py cuda/test_numba_cuda.py \
  engine/test_three_way.py::test_under_jit engine/test_three_way.py::test_one_input_at_a_time \
  engine/test_threads.py::test_different_kernels engine/test_threads.py::test_one_kernel)
# Which checks the checking mode makes, how a process ends, how libraries are opened and how a language lays out what it
# has are no matters of JAX; tests/jax/test_sanitize.py has what JAX makes of an error.
NEXT_IGNORED ?= $(addprefix --ignore=tests/jax/test_,$(addsuffix .py,sanitize_right sanitize_loops sanitize_nests \
  sanitize_written sanitize_narrow crashes libraries shared_libraries suggestions tune unions)) \
  $(addprefix --deselect=tests/jax/test_structures.py::test_,derived_types arrays_ objects_ numbers_ rows_ packed \
  structures_ texts_of_fortran another_structure)

VENV := .venv
NEXT := .venv-next
BUILT_FROM := pyproject.toml CMakeLists.txt $(wildcard csrc/*)
C_SOURCES = $$(git ls-files 'csrc/*.cc' 'csrc/*.h' 'examples/*.c' 'benchmarks/kernels/*.c' 'benchmarks/adjoints/*.c' 'tests/kernels/*.c' 'tests/kernels/*.cpp' 'tests/cuda/*.cpp' 'tests/codegen/*.cc' 'tests/codegen/*.h' 'tests/engine/memory_shapes/*.c')

.PHONY: demo docs test test-main test-next next-installed test-wheel test-aarch64 lint format bench fuzz table clean
.NOTPARALLEL:
.DEFAULT_GOAL := test

# One stamp for the package and one for each dependency group of pyproject.toml: the second run installs nothing.
$(VENV)/.installed: PYTHON_HERE = $(PYTHON)
$(NEXT)/.installed: PYTHON_HERE = $(NEXT_PYTHON)
# The first has what builds the package, so that its wheel is made of the same objects; in the other one pip shows that
# pyproject.toml names all that it takes to build.
$(VENV)/.installed: BUILDS = --no-build-isolation
%/.installed: $(BUILT_FROM)
	@test -n "$(PYTHON_HERE)" || { echo "Python 3.11 or newer is needed; set PYTHON to its path" >&2; exit 1; }
	test -x $*/bin/python || $(PYTHON_HERE) -m venv $*
	$*/bin/python -m pip install --quiet --upgrade pip
	$(if $(BUILDS),$*/bin/python -m pip install --quiet --group build)
	$*/bin/python -m pip install --quiet $(BUILDS) --editable .
	@touch $@

$(VENV)/.group-%: pyproject.toml | $(VENV)/.installed
	$(VENV)/bin/python -m pip install --quiet --group $*
	@touch $@

$(NEXT)/.group-%: pyproject.toml | $(NEXT)/.installed
	$(NEXT)/bin/python -m pip install --quiet --group $*
	@touch $@

demo: $(VENV)/.installed $(VENV)/.group-demo
	$(VENV)/bin/python examples/gmm/demo.py --picture build/gmm.png

test: test-wheel test-next test-main

test-main: $(VENV)/.installed $(VENV)/.group-test
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS) --junitxml=build/tests.xml
	@test "$(CI)" != true || $(VENV)/bin/python -m tests.jax.table --check build/tests.xml

ifeq ($(NEXT_PYTHON),)
next-installed:
test-next:
	@echo "left out: the tests on Python 3.12 or newer with the newest JAX (no such interpreter was found)"
	@test "$(CI)" != true || { echo "in CI that is a failure" >&2; exit 1; }
else
next-installed: $(NEXT)/.installed $(NEXT)/.group-test
test-next: next-installed
	$(NEXT)/bin/python -m pytest $(PYTEST_ARGS) --one-row-in=6 $(NEXT_TESTS) $(NEXT_IGNORED)
endif

quick: $(VENV)/.installed $(VENV)/.group-test $(VENV)/.group-lint
	$(VENV)/bin/python -m tests.support.quick

test-wheel: $(VENV)/.installed $(VENV)/.group-test
	.ci/test-wheel $(VENV)/bin/python

test-aarch64: $(VENV)/.installed
	.ci/test-aarch64 $(VENV)/bin/python

lint: $(VENV)/.installed $(VENV)/.group-lint $(VENV)/.group-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/clang-format --dry-run --Werror $(C_SOURCES)
	$(VENV)/bin/lint-imports --no-logo
	$(VENV)/bin/pyright
	$(VENV)/bin/mypy --strict tests/support/typed_program.py

format: $(VENV)/.installed $(VENV)/.group-lint
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(C_SOURCES)

docs: $(VENV)/.installed $(VENV)/.group-docs
	$(VENV)/bin/python -m sphinx --fail-on-warning --quiet -b html -c docs . build/docs

bench: $(VENV)/.installed $(VENV)/.group-bench
	$(VENV)/bin/python -m benchmarks
	$(VENV)/bin/python -m benchmarks.ablation

fuzz: $(VENV)/.installed $(VENV)/.group-test
	$(VENV)/bin/python -m pytest tests/engine/test_generated.py tests/engine/test_wild.py \
		tests/engine/test_parallel_programs.py --hypothesis-profile=long $(PYTEST_ARGS)

table: $(VENV)/.installed $(VENV)/.group-test
	-$(VENV)/bin/python -m pytest $(PYTEST_ARGS) tests/jax --junitxml=build/jax.xml
	$(VENV)/bin/python -m tests.jax.table build/jax.xml

gpu-test:
	.ci/gpu $(GPU_PYTHON) -m pytest tests/gpu --confcutdir=tests/gpu

gpu-bench:
	.ci/gpu $(GPU_PYTHON) -m benchmarks.gpu

clean:
	rm -rf build $(VENV) $(NEXT)
