"""Programs to callable functions: memory, disk, threads, layouts."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from jax_enzyme import own_sources
from jax_enzyme.ad.reversal import plan_reversal
from jax_enzyme.cache import DiskCache
from jax_enzyme.codegen import derived, engine
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.codegen.object import build_function, entry_module
from jax_enzyme.codegen.stored import Stored
from jax_enzyme.frontends import load
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir.arrays import Augmented, Buffer, Jvp, Pullback, Vjp, jvp_buffers, vjp_buffers
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, parse
from tests.support.native import call

SIGNATURE = parse("n: i32, a: f64, x: f64[n], inout y: f64[n] -> f64")
BINDING = Binding.of({"n": 7}, {})


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", str(tmp_path))


def _axpy(salt: int = 0) -> Program:
    """A kernel that no other test has."""
    return load(
        f"""double axpy(int n, double a, const double *x, double *y) {{
            double s = {salt};
            for (int i = 0; i < n; i++) {{ y[i] += a * x[i]; s += y[i]; }}
            return s;
        }}""",
        lang="c",
    )


def test_a_c_kernel() -> None:
    built = derived.build(_axpy(), SIGNATURE, BINDING)
    assert [b.name for b in built.buffers] == ["a", "x", "y", "return"]
    x, y = np.arange(7.0), np.ones(7)
    result, s = call(built, [2.0, x, y])
    assert np.array_equal(result, 1 + 2 * x) and s == result.sum()


def test_built_once_per_process() -> None:
    program = _axpy(1)
    assert derived.build(program, SIGNATURE, BINDING) is derived.build(program, SIGNATURE, BINDING)
    other = Binding.of({"n": 8}, {})
    assert derived.build(program, SIGNATURE, other).key != derived.build(program, SIGNATURE, BINDING).key
    scalar = derived.build(program, SIGNATURE, BINDING, (), Options(vector_math=False))
    assert scalar.key != derived.build(program, SIGNATURE, BINDING).key


def test_eight_threads_build_eight_kernels() -> None:
    programs = [_axpy(100 + i) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda p: derived.build(p, SIGNATURE, BINDING), programs))
    for i, one in enumerate(built):
        assert call(one, [0.0, np.zeros(7), np.zeros(7)])[1] == 100 + i


def test_eight_threads_build_one_kernel() -> None:
    program = _axpy(200)
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda _: derived.build(program, SIGNATURE, BINDING), range(8)))
    assert all(one is built[0] for one in built)


def test_another_process_takes_the_object_from_disk(tmp_path: Path) -> None:
    program = _axpy(300)
    key = derived.build(program, SIGNATURE, BINDING).key
    (tmp_path / "program").write_bytes(pickle.dumps((program, SIGNATURE, BINDING)))
    script = """
        import pickle
        import sys
        from jax_enzyme.codegen import derived
        from tests.support.native import call

        with open(sys.argv[1], "rb") as file:
            built = derived.build(*pickle.load(file))
        print(built.key, call(built, [0.0, [0.0] * 7, [0.0] * 7])[1], "jax_enzyme.codegen.engine" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "program")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert result.stdout.split() == [key, "300.0", "False"], result.stderr


def test_a_damaged_entry_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    derived.build(_axpy(400), SIGNATURE, BINDING)
    (entry,) = (tmp_path / "objects").iterdir()
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    monkeypatch.setattr(derived, "_built", Memo(8))
    assert call(derived.build(_axpy(400), SIGNATURE, BINDING), [0.0, np.zeros(7), np.zeros(7)])[1] == 400


def test_the_sources_of_the_package_are_read_once(tmp_path: Path) -> None:
    """Not again for as long as nothing about the files changed."""
    read = own_sources.own_digest()
    [entry] = (tmp_path / "sources").iterdir()
    assert own_sources.own_digest() == read
    DiskCache.named("sources").put(entry.name, b"what was found the first time")
    assert own_sources.own_digest() == "what was found the first time"


def test_every_file_of_the_package_decides(tmp_path: Path) -> None:
    """Run-time libraries in C++ and headers without a suffix too."""
    for name in ("runtime/team.cpp", "include/barrier", "__pycache__/module.pyc"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert {name for name, _, _ in own_sources.sources_of(str(tmp_path))} == {"runtime/team.cpp", "include/barrier"}


def test_layouts_without_a_tape_need_no_engine() -> None:
    program = Program("not even IR", "f", "c", "f.c")
    base = derived.layout(program, SIGNATURE, BINDING)
    forward = Jvp((True, False, True, False))
    reverse = Vjp((True, True, True, False), (False, False, True, True))
    assert derived.layout(program, SIGNATURE, BINDING, (forward,)) == jvp_buffers(base, forward)
    both = jvp_buffers(vjp_buffers(base, reverse), step := Jvp((True, True, True, False, False, False, True, True)))
    assert derived.layout(program, SIGNATURE, BINDING, (reverse, step)) == both


def test_a_layout_with_a_tape_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody builds the derivative, and no process has it in memory."""
    arguments = (_cube()[0], CUBE, BINDING, (Augmented(*MASKS),))
    planned = derived.layout(*arguments)

    def never(*_: object) -> None:
        raise AssertionError("planned again")

    monkeypatch.setattr(derived, "_derived", Memo(8))
    monkeypatch.setattr(engine.ad, "derive", never)
    assert derived.layout(*arguments) == planned


def test_stored_form_is_complete() -> None:
    stored = Stored((Buffer("x", "f64", (2, 3), "inout", "shadow", 4, zero=True, discard=True),), True, b"\n{code}\n")
    assert Stored.from_bytes(stored.to_bytes()) == stored


def test_the_module_of_a_kernel_is_shared_and_stays_as_it_is() -> None:
    program = _axpy(500)
    function = derived.derived(program, SIGNATURE, BINDING)
    assert function is derived.derived(program, SIGNATURE, BINDING)
    assert call(build_function(function), [0.0, np.zeros(7), np.zeros(7)])[1] == 500
    assert call(build_function(function), [0.0, np.zeros(7), np.zeros(7)])[1] == 500


def _cube() -> tuple[Program, np.ndarray]:
    source = "void f(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = x[i] * x[i] * x[i]; }"
    return load(source, lang="c"), np.linspace(-1, 2, 7)


CUBE = parse("n: i32, x: f64[n], out y: f64[n]")
MASKS = ((True, False), (False, True))


def test_what_prints_and_has_no_tape_of_fixed_size_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """#include <stdio.h>
        static double power(double x, int n) {
            if (n < 0) printf("%d\\n", n);
            return n < 1 ? 1.0 : x * power(power(x, n / 3), 2 - n % 2);
        }
        void f(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = power(x[i], n + i); }"""
    plans: list[object] = []
    planned = plan_reversal.__globals__["_planned"]
    monkeypatch.setitem(plan_reversal.__globals__, "_planned", lambda *a: plans.append(a) or planned(*a))
    program = load(source, lang="c")
    assert not derived.split(program, CUBE, BINDING, Vjp(*MASKS))
    derived.derived(program, CUBE, BINDING, (Vjp(*MASKS),))
    assert len(plans) == 1


def test_what_one_plan_makes_has_rules_of_libraries_of_its_own() -> None:
    source = """double cblas_ddot(int, const double *, int, const double *, int);
        void f(int n, const double *x, double *y) { y[0] = cblas_ddot(n, x, 1, x, 1) * x[0]; }"""
    program = load(source, lang="c")
    for threads in (None, 2):
        functions = derived.derived(program, CUBE, BINDING, (Vjp(*MASKS),), Options(threads=threads)).module.functions
        called = {
            o for f in functions.values() for i in f.instructions() for o in i.operands if isinstance(o, Function)
        }
        assert called <= set(functions.values())


def test_what_calls_mpi_has_loops_for_as_many_threads_as_are_named() -> None:
    source = """int MPI_Bcast(void *, int, int, int, int);
        void f(int n, const double *x, double *y) { y[0] = x[0]; MPI_Bcast(y, 1, 0x4c00080b, 0, 0x44000000); }"""
    function = derived.regular(load(source, lang="c"), CUBE, BINDING)
    for threads, answer in ((None, -1), (3, -3)):
        assert f"ret i64 {answer}\n" in to_text(entry_module(function, threads))


def test_derivatives_of_every_kind() -> None:
    program, x = _cube()
    ones = np.ones(7)
    y, tangent = call(derived.build(program, CUBE, BINDING, (Jvp((True, False)),)), [x, ones])
    assert np.allclose(y, x**3) and np.allclose(tangent, 3 * x**2)
    (cotangent,) = call(derived.build(program, CUBE, BINDING, (Vjp(*MASKS),)), [x, ones])
    assert np.allclose(cotangent, 3 * x**2)
    twice = (Vjp(*MASKS), Jvp((True, False, False, True)))
    first, second = call(derived.build(program, CUBE, BINDING, twice), [x, ones, ones, np.zeros(7)])
    assert np.allclose(first, 3 * x**2) and np.allclose(second, 6 * x)


def test_split_reverse() -> None:
    program, x = _cube()
    assert derived.split(program, CUBE, BINDING, Vjp(*MASKS))
    forward, backward = (Augmented(*MASKS),), (Pullback(*MASKS),)
    assert derived.layout(program, CUBE, BINDING, forward)[:2] == derived.layout(program, CUBE, BINDING)
    augmented = derived.build(program, CUBE, BINDING, forward)
    pullback = derived.build(program, CUBE, BINDING, backward)
    assert derived.layout(program, CUBE, BINDING, backward) == pullback.buffers
    kept = {b.name: a for b, a in zip([b for b in augmented.buffers if b.is_result], call(augmented, [x]), strict=True)}
    given = {**kept, "x": x, "y_bar": np.ones(7)}
    (cotangent,) = call(pullback, [given[b.name] for b in pullback.buffers if b.is_input])
    assert np.allclose(cotangent, 3 * x**2)
