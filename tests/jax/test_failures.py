"""Kernels that fail, and the floating-point environment they run in."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

import jax_enzyme as je

CHECKED = """
int root(const double *x, double *y) { if (*x < 0) return 7; *y = *x * *x; return 0; }
"""


@pytest.fixture(scope="module")
def root() -> je.Kernel:
    return je.kernel(CHECKED, "root", "x: f64[], out y: f64[] -> status", lang="c")


def test_status_becomes_an_error_with_name_and_number(root: je.Kernel) -> None:
    assert root(2.0) == 4.0
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="kernel `root` returned status 7"):
            jax.block_until_ready(root(-1.0))


def test_status_under_jit(root: je.Kernel) -> None:
    call = jax.jit(root)
    assert call(2.0) == 4.0
    # JAX reports what fails in the compiled path of a jitted function as ValueError, whatever it was.
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="kernel `root` returned status 7"):
        jax.block_until_ready(call(-1.0))


def test_status_under_jit_after_a_success_is_what_jax_makes_of_its_own_failures(root: je.Kernel) -> None:
    """Its compiled path reports whatever fails as ValueError. Where JAX mends that, this test fails, and so may what
    docs/jax.md says of it."""
    failing = False

    def check(x: np.ndarray) -> np.ndarray:
        if failing:
            raise RuntimeError("on purpose")
        return x

    ours = jax.jit(root)
    theirs = jax.jit(lambda x: jax.pure_callback(check, jax.ShapeDtypeStruct((), jnp.float64), x))
    for _ in range(2):
        assert ours(2.0) == theirs(4.0)
    failing = True
    with pytest.raises(ValueError, match="kernel `root` returned status 7"):
        jax.block_until_ready(ours(-1.0))
    with pytest.raises(ValueError, match="on purpose"):
        jax.block_until_ready(theirs(4.0))


def test_status_in_a_derivative_and_in_a_batch(root: je.Kernel) -> None:
    """A derivative has the name of its kernel; of a batch, the first element that failed is named."""
    for derivative, where in ((jax.grad(root), ""), (jax.jacfwd(root), " in batch element 0")):  # of one direction
        with pytest.raises(jax.errors.JaxRuntimeError, match=rf"kernel `root` returned status 7{where}(\n|$)"):
            jax.block_until_ready(derivative(-1.0))
    for function in (root, jax.grad(root)):
        with pytest.raises(
            jax.errors.JaxRuntimeError, match=r"kernel `root` returned status 7 in batch element 1(\n|$)"
        ):
            jax.block_until_ready(jax.vmap(function)(jnp.array([1.0, -1.0, 2.0, -2.0])))
    assert root(3.0) == 9.0


def test_the_element_of_a_large_batch_and_of_one_of_several_dimensions(root: je.Kernel) -> None:
    flat = np.ones(100_000)
    flat[[70_123, 80_000, 99_999]] = -1
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"returned status 7 in batch element 70123(\n|$)"):
        jax.block_until_ready(jax.vmap(root)(flat))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"returned status 7 in batch element \(140, 0, 123\)(\n|$)"):
        jax.block_until_ready(jax.vmap(jax.vmap(jax.vmap(root)))(flat.reshape(-1, 2, 250)[:, :, :125]))


@pytest.mark.parametrize(
    ("rows", "bad", "where"),
    [
        (16, 5, " in batch element 1 of the part on device 2"),
        (16, 1, " in batch element 1"),
        (8, 5, " on device 5"),
        (8, 0, " in batch element 0"),
    ],
)
def test_the_device_of_a_batch_that_is_split(root: je.Kernel, rows: int, bad: int, where: str) -> None:
    mesh = jax.make_mesh((8,), ("d",))
    batch = jax.device_put(np.where(np.arange(rows) == bad, -1.0, 1.0), NamedSharding(mesh, PartitionSpec("d")))
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"returned status 7{where}(\n|$)"):
        jax.block_until_ready(jax.jit(jax.vmap(root))(batch))


def test_the_second_failure_is_reported_like_the_first(root: je.Kernel) -> None:
    """Outside a function that the caller has jitted, where JAX makes a ValueError of it."""
    batched = jax.vmap(jax.grad(root))
    for failing in (root, jax.grad(root), jax.jacfwd(root), jax.hessian(root), lambda x: batched(jnp.full(2, x))):
        for _ in range(3):
            with pytest.raises(jax.errors.JaxRuntimeError, match=r"kernel `root` returned status 7"):
                jax.block_until_ready(failing(-1.0))


def test_a_kernel_that_comes_to_no_end_fails() -> None:
    source = "static double f(double x) { __builtin_unreachable(); }\ndouble k(double x) { return f(x) * x; }"
    kernel = je.kernel(source, "k", "x: f64 -> f64", lang="c")
    for failing in (kernel, jax.grad(kernel), lambda x: jax.jvp(kernel, (x,), (1.0,))):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"kernel `k`.*comes to no end"):
            jax.block_until_ready(failing(1.5))


def test_a_failing_kernel_has_the_name_of_its_source() -> None:
    source = "namespace orbit { template <class T> T step(T x) { if (x > 2) throw 1; return x * x; } }"
    kernel = je.kernel(source, "orbit::step<double>", "x: f64 -> f64", lang="c++")
    for failing in (kernel, jax.grad(kernel)):
        with pytest.raises(jax.errors.JaxRuntimeError, match="kernel `orbit::step<double>` failed"):
            jax.block_until_ready(failing(3.0))


def test_an_exception_that_a_library_throws_ends_the_call() -> None:
    source = """
#include <string>
extern "C" double k(double x) {
    try { return std::stoi(std::wstring(x > 2 ? L"x" : L"3")) * x * x; } catch (...) { return 0; }
}"""
    kernel = je.kernel(source, "k", "x: f64 -> f64", lang="c++")
    for failing in (kernel, jax.grad(kernel), lambda x: jax.vmap(kernel)(jnp.stack([1.0, x]))):
        with pytest.raises(jax.errors.JaxRuntimeError, match="`std::invalid_argument`: stoi: no conversion"):
            jax.block_until_ready(failing(3.0))
    assert kernel(2.0) == 12 and jax.grad(kernel)(2.0) == 12


def test_exceptions_of_numbers_in_text_are_caught() -> None:
    source = """
#include <stdexcept>
#include <string>
static int level(const std::string &text) {
    try { return std::stoi(text); }
    catch (const std::invalid_argument &e) { return e.what() == std::string("stoi: no conversion") ? 3 : 0; }
    catch (const std::out_of_range &) { return 5; }
}
extern "C" double k(double x) {
    std::size_t end = 0;
    double c = std::stod("2.5z", &end) + std::stol("-17") + std::stoull("ff", nullptr, 16) + end;
    try { c += std::stof(x > 2 ? "1.5" : "none"); } catch (const std::logic_error &) { c *= 2; }
    return c * x * x + level("12") + level("z") * x + level("99999999999") * x * x * x;
}"""
    kernel = je.kernel(source, "k", "x: f64 -> f64", lang="c++")
    for x, c in ((3.0, 245.0), (1.0, 487.0)):
        assert kernel(x) == c * x * x + 12 + 3 * x + 5 * x**3
        assert jax.grad(kernel)(x) == jax.jvp(kernel, (x,), (1.0,))[1] == 2 * c * x + 3 + 15 * x * x


def test_what_exceptions_of_optional_and_variant_say_is_there() -> None:
    source = """
#include <optional>
#include <variant>
extern "C" double k(double x) {
    std::optional<double> o;
    std::variant<double, long> v = 2l;
    if (x > 2) v = x;
    try { return std::get<double>(v) * o.value(); }
    catch (const std::bad_variant_access &e) { return x * (e.what()[4] == 'v'); }
    catch (const std::exception &e) { return x * x * (e.what()[4] == 'o'); }
}"""
    kernel = je.kernel(source, "k", "x: f64 -> f64", lang="c++")
    assert (kernel(1.5), jax.grad(kernel)(1.5), kernel(3.0), jax.grad(kernel)(3.0)) == (1.5, 1, 9, 6)


def test_classes_of_exceptions_of_libcxx_are_caught_as_their_bases() -> None:
    source = """
#include <ios>
extern "C" double k(double x) {
    try {
        if (x > 2) throw std::ios_base::failure("own");
        return x * x;
    } catch (const std::logic_error &) { return 0; } catch (const std::runtime_error &) { return -3 * x; }
}"""
    kernel = je.kernel(source, "k", "x: f64 -> f64", lang="c++")
    assert (kernel(2.0), kernel(4.0), jax.grad(kernel)(4.0)) == (4, -12, -3)


def test_denormals_are_kept() -> None:
    half = je.kernel("double half(double x) { return x * 0.5; }", "half", "x: f64 -> f64", lang="c")
    tiny = np.float64(5e-324) * 2
    assert half(tiny) == 5e-324
    assert jax.jit(jax.vmap(half))(np.full(1000, tiny)).min() == 5e-324


def test_large_batch_over_threads() -> None:
    slow = je.kernel(
        "double slow(double x) { double s = x; for (int i = 0; i < 2000; i++) s = s * 0.999 + x; return s; }",
        "slow",
        "x: f64 -> f64",
        lang="c",
    )
    x = np.linspace(0, 1, 5000)
    s = x.copy()
    for _ in range(2000):
        s = s * 0.999 + x
    np.testing.assert_allclose(jax.vmap(slow)(x), s, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.vmap(slow))(x.reshape(50, 100)), s.reshape(50, 100), rtol=1e-12)
