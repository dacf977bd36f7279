"""Array functions of kernels: their text, their buffers, and what they compute when they are run."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from jax_enzyme.errors import SignatureError
from jax_enzyme.frontends import load
from jax_enzyme.ir import reader, writer
from jax_enzyme.ir.arrays import ITEM_BYTES, ArrayFunction
from jax_enzyme.signature import Binding, parse
from jax_enzyme.transform.bind import bind, check_signature
from tests.support.tools import need

DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


def bound(
    source: str,
    signature: str,
    dims: Mapping[str, int] | None = None,
    static: Mapping[str, int] | None = None,
    lang: str = "c",
) -> ArrayFunction:
    program = load(source, "f", lang=lang)
    return bind(reader.parse(program.ir), program.symbol, parse(signature), Binding.of(dims or {}, static or {}))


def primal_text(function: ArrayFunction) -> list[str]:
    text = writer.function_text(function.module, function.module.functions[function.symbol])
    return [line.strip() for line in text.splitlines() if line.strip()]


def run(function: ArrayFunction, *arrays: np.ndarray) -> int:
    """Compiles as it is, and calls with these buffers; the status."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(writer.to_text(function.module))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        address = engine.get_function_address(function.symbol)
        entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(arrays))(address)
        return entry(*[a.ctypes.data for a in arrays])


AXPY = """double f(int n, double a, const double *x, double *y) {
  double s = 0;
  for (int i = 0; i < n; i++) { y[i] += a * x[i]; s += y[i]; }
  return s;
}"""


def test_text() -> None:
    function = bound(AXPY, "n: i32, a: f64, x: f64[n], inout y: f64[n] -> f64", {"n": 3})
    assert primal_text(function) == [
        "define i64 @je.primal(ptr noalias noundef align 8 dereferenceable(8) %a,"
        " ptr noalias noundef align 8 dereferenceable(24) %x, ptr noalias noundef align 8 dereferenceable(24) %y,"
        " ptr noalias noundef align 8 dereferenceable(8) %return) {",
        "entry:",
        "%0 = load double, ptr %a, align 8",
        "%1 = call double @f(i32 noundef 3, double noundef %0, ptr noundef %x, ptr noundef %y)",
        "store double %1, ptr %return, align 8",
        "ret i64 0",
        "}",
    ]
    assert [(b.name, b.shape, b.io, b.of, b.zero) for b in function.buffers] == [
        ("a", (), "in", 0, False),
        ("x", (3,), "in", 1, False),
        ("y", (3,), "inout", 2, False),
        ("return", (), "out", 3, True),
    ]


def test_it_runs() -> None:
    function = bound(AXPY, "n: i32, a: f64, x: f64[n], inout y: f64[n] -> f64", {"n": 3})
    y, result = np.ones(3), np.zeros(())
    assert run(function, np.array(2.0), np.arange(3.0), y, result) == 0
    assert y.tolist() == [1, 3, 5]
    assert result == 9


def test_empty_arrays_are_not_dereferenceable() -> None:
    text = primal_text(bound(AXPY, "n: i32, a: f64, x: f64[n], inout y: f64[n]", {"n": 0}))
    assert "ptr noalias noundef align 8 %x" in text[0]


def test_scratch_and_out() -> None:
    source = "void f(const double *x, double *w, double *y) { w[0] = x[0]; y[0] = w[0]; }"
    function = bound(source, "x: f64[], scratch w: f64[4], out y: f64[]")
    assert [(b.name, b.io, b.zero) for b in function.buffers] == [
        ("x", "in", False),
        ("w", "scratch", False),
        ("y", "out", True),
    ]


def test_integers_by_reference() -> None:
    """Fortran's way: a dimension and a static integer are constants in memory, a traced one is a buffer."""
    source = "void f(const int *n, const long *k, const short *t, double *y) { y[*n - 1] += (double)*k * *t; }"
    function = bound(source, "n: i32[], k: i64[], t: i16[], inout y: f64[n]", {"n": 2}, {"k": 2**40})
    assert [b.name for b in function.buffers] == ["t", "y"]
    y = np.zeros(2)
    run(function, np.array(-3, np.int16), y)
    assert y.tolist() == [0, -3 * 2.0**40]


def test_static_integers_keep_their_sign() -> None:
    source = "long f(signed char a, unsigned char b, unsigned c) { return a + (long)b + c; }"
    function = bound(source, "a: i8, b: u8, c: u32 -> i64", {}, {"a": -5, "b": 255, "c": 2**32 - 1})
    result = np.zeros((), np.int64)
    run(function, result)
    assert result == -5 + 255 + 2**32 - 1


C_TYPES = {
    "bool": "_Bool", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long", "u8": "unsigned char",
    "u16": "unsigned short", "u32": "unsigned", "u64": "unsigned long", "f16": "_Float16", "bf16": "__bf16",
    "f32": "float", "f64": "double", "c64": "float _Complex", "c128": "double _Complex",
}  # fmt: skip


@pytest.mark.parametrize("dtype", C_TYPES)
def test_every_dtype_by_value_by_reference_and_returned(dtype: str) -> None:
    c = C_TYPES[dtype]
    source = f"{c} f({c} a, double pad, {c} b, const {c} *p, {c} *q) {{ q[1] = a; q[0] = *p; return b; }}"
    function = bound(source, f"a: {dtype}, pad: f64, b: {dtype}, p: {dtype}[], out q: {dtype}[2] -> {dtype}")
    kind = DTYPES[dtype]
    values = {"bool": [True, False, True], "c64": [1 - 2j, 3j, -1 + 1j], "c128": [1 - 2j, 3j, -1 + 1j]}
    a, b, p = (np.array(v, kind) for v in values.get(dtype, [100, 7, 5] if dtype[0] == "u" else [-100, 7, -5]))
    q, result = np.zeros(2, kind), np.zeros((), kind)
    assert function.buffers[-1].nbytes == ITEM_BYTES[dtype] == result.nbytes
    assert run(function, a, np.array(1.0), b, p, q, result) == 0
    assert (q[0], q[1], result[()]) == (p, a, b)


def test_complex_numbers_that_registers_do_not_hold() -> None:
    """Beyond eight registers, x86-64 passes a copy in memory."""
    names = "abcdefg"
    arguments = ", ".join(f"double _Complex {n}" for n in names)
    source = f"double _Complex f({arguments}) {{ return {' + '.join(names)}; }}"
    function = bound(source, ", ".join(f"{n}: c128" for n in names) + " -> c128")
    result = np.zeros((), np.complex128)
    run(function, *(np.array(1j + i) for i in range(7)), result)
    assert result == 21 + 7j


def test_c_plus_plus_and_aliases() -> None:
    source = 'extern "C" double g(double x) { return 2 * x; }\nextern "C" double f(double) __attribute__((alias("g")));'
    program = load(source, "g", lang="c++")
    function = bind(reader.parse(program.ir), "f", parse("x: f64 -> f64"), Binding())
    result = np.zeros(())
    run(function, np.array(3.0), result)
    assert result == 6


@pytest.mark.parametrize("c_type", ["int", "long", "short", "_Bool", "unsigned char"])
@pytest.mark.parametrize("status", [0, 1, -7, 300])
def test_status(c_type: str, status: int) -> None:
    """Zero stays zero; what is not keeps its number below the word that says that the kernel returned it."""
    function = bound(f"{c_type} f(int s, int *t) {{ return s; }}", "s: i32, inout t: i32[] -> status")
    found = run(function, np.array(status, np.int32), np.array(0, np.int32))
    seen = {"_Bool": int(status != 0), "short": status, "unsigned char": status % 256}.get(c_type, status)
    if c_type == "unsigned char" and seen > 127:
        seen -= 256
    assert found == ((1 << 32) | (seen % 2**32) if status else 0)


@pytest.mark.parametrize(
    ("source", "signature", "cause", "remedy"),
    [
        (
            "double f(int n, double *x) { return *x; }",
            "x: f64[n] -> f64",
            "1 parameter in the signature, but `f` has 2",
            "all of them",
        ),
        (
            "double f(double *x) { return *x; }",
            "n: i32, x: f64[n] -> f64",
            "2 parameters in the signature, but `f` has 1",
            "all of them",
        ),
        (
            "double f(long n, double *x) { return *x; }",
            "n: i32, x: f64[n] -> f64",
            "`n: i32` in the signature means int, but in the source parameter 1, `n`, is `long`",
            "`n: i64`",
        ),
        (
            "double f(double *x) { return *x; }",
            "x: f64 -> f64",
            "means double, but in the source parameter 1, `x`, is `double *`",
            "`x: f64[]`",
        ),
        (
            "double f(double x) { return x; }",
            "x: f64[] -> f64",
            "means a pointer, but in the source parameter 1, `x`, is `double`",
            "`x: f64`",
        ),
        (
            "double f(const float *x) { return *x; }",
            "x: f64[n] -> f64",
            "`x` is f64[n] in the signature, but in the source parameter 1, `x`, is `const float *`",
            "`x: f32[n]`",
        ),
        (
            "double f(double x[][3]) { return x[0][0]; }",
            "x: f32[n,3] -> f64",
            "`x` is f32[n,3] in the signature",
            "`x: f64[n,3]`",
        ),
        (
            "double f(const long *k) { return *k; }",
            "k: i32[n] -> f64",
            "`k` is i32[n] in the signature, but in the source parameter 1, `k`, is `const long *`",
            "`k: i64[n]`",
        ),
        (
            "float f(double x) { return x; }",
            "x: f64 -> f64",
            "says `-> f64`, but `f` returns `float`",
            "`-> f32`",
        ),
        (
            "double f(const double *x, const double *y, int n) { return x[n] - y[n]; }",
            "y: f64[n], x: f64[n], n: i32 -> f64",
            "come in another order",
            "the source's order is x, y, n",
        ),
        ("void f(double x) { }", "x: f64 -> f64", "says `-> f64`, but `f` returns nothing", "leave the `->` out"),
        ("double f(double *x) { return *x; }", "inout x: f64[] -> status", "says `-> status`", "`-> f64`"),
        ("double f(double x) { return x; }", "x: c128 -> f64", "means complex double", "`x: f64`"),
        ("double f(_Bool x) { return x; }", "x: f64 -> f64", "is `_Bool`", None),
        (
            "struct s { double a[9]; }; struct s f(double x) { struct s r = {{x}}; return r; }",
            "x: f64 -> f64",
            "`f` returns the structure `s`",
            "-> {a: f64",
        ),
    ],
)
def test_a_kernel_that_is_not_as_the_signature_says(
    source: str, signature: str, cause: str, remedy: str | None
) -> None:
    parsed = parse(signature)
    with pytest.raises(SignatureError) as caught:
        bound(source, signature, dict.fromkeys(parsed.shape_names, 3))
    assert cause in caught.value.cause
    assert "kernel.c:1" in (caught.value.place or "")
    assert remedy is None or remedy in (caught.value.remedy or "")
    with pytest.raises(SignatureError) as early:
        check_signature(reader.parse(load(source, "f", lang="c").ir), "f", parsed)
    assert str(early.value) == str(caught.value)


def test_objects_of_a_library_are_no_plain_memory() -> None:
    source = '#include <vector>\nextern "C" double f(const std::vector<double> &v) { return v[0]; }'
    with pytest.raises(
        SignatureError, match="parameter 1, `v`, is an object of the C\\+\\+ library: `const vector<double"
    ):
        bound(source, "v: f64[n] -> f64", {"n": 3}, lang="c++")
    for result in ("v[0]", "1"):
        bound(
            f'#include <array>\nextern "C" double f(const std::array<double, 3> &v) {{ return {result}; }}',
            "v: f64[3] -> f64",
            lang="c++",
        )


def test_complex_numbers_of_the_library_are_plain_memory() -> None:
    source = """#include <complex>
extern "C" void f(int n, const std::complex<double> *x, std::complex<float> *y) {
  for (int i = 0; i < n; i++) y[i] = std::complex<float>(x[i] * x[i]);
}"""
    function = bound(source, "n: i32, x: c128[n], out y: c64[n]", {"n": 2}, lang="c++")
    x, y = np.array([1 + 2j, 3 - 1j]), np.zeros(2, np.complex64)
    assert run(function, x, y) == 0
    np.testing.assert_array_equal(y, x**2)
    with pytest.raises(SignatureError, match=r"`y` is c128\[n\] in the signature"):
        bound(source, "n: i32, x: c128[n], out y: c128[n]", {"n": 2}, lang="c++")


def test_fortran_arguments() -> None:
    need("flang-22")
    source = """subroutine f(n, x, y, z)
  integer :: n
  double precision :: x(n), z
  {kind} :: y
  z = x(1)
end subroutine
"""
    plain = source.replace("{kind}", "integer(8)")
    bound(plain, "n: i32[], x: f64[n], y: i64[], out z: f64[]", {"n": 3}, lang="fortran")
    with pytest.raises(SignatureError, match=r"`y` is i32\[\] in the signature.*parameter 3, `y`, is `integer"):
        bound(plain, "n: i32[], x: f64[n], y: i32[], out z: f64[]", {"n": 3}, lang="fortran")
    with pytest.raises(SignatureError, match=r"a pointer to one value is `y: i64\[\]`"):
        bound(plain, "n: i32[], x: f64[n], y: i32, out z: f64[]", {"n": 3}, {"y": 1}, lang="fortran")
    described = source.replace("{kind} :: y", "double precision :: y(:)")
    bound(described, "n: i32[], x: f64[n], y: f64[n], out z: f64[]", {"n": 3}, lang="fortran")
    for wrong in ("f32[n]", "f64[n,2]", "f64[]"):
        with pytest.raises(SignatureError, match="parameter 3, `y`, is"):
            bound(described, f"n: i32[], x: f64[n], y: {wrong}, out z: f64[]", {"n": 3}, lang="fortran")
    described = source.replace("{kind} :: y", "double precision, allocatable :: y")
    with pytest.raises(SignatureError, match="parameter 3, `y`, is"):
        bound(described, "n: i32[], x: f64[n], y: f64[], out z: f64[]", {"n": 3}, lang="fortran")


def fits(source: str, signature: str, lang: str = "c") -> None:
    program = load(source, "f", lang=lang)
    check_signature(reader.parse(program.ir), program.symbol, parse(signature))


POINT = "struct p { double x, y; };"
MIXED = "struct r { double a; struct { int b; } c; };"
OWNER = "struct v { long n; double *d; };"
SEVERAL = "struct d { double x[4]; };"
BOXED = "struct b { double *p; };"
ENUM = "enum e { A, B };"
UNION = "union u { double d; long k; };"


@pytest.mark.parametrize(
    ("declaration", "signature"),
    [
        ("void *a, char *b, unsigned char *c", "a: f32[n], b: f64[n], c: bool[n] -> f64"),
        (f"{POINT}struct p *a, double *b", "a: f64[n,2], b: c128[n] -> f64"),
        (f"{MIXED}struct r *a", "a: u8[n,16] -> f64"),
        (f"{MIXED}struct r *a", "scratch a: f64[3,2] -> f64"),
        (f"{OWNER}struct v *a", "scratch a: i64[2] -> f64"),
        (f"{OWNER}struct v *a", "a: u8[16] -> f64"),
        ("struct unseen *a", "inout a: f64[n] -> f64"),
        (f"{UNION}union u *a, union u *b", "a: f64[n], b: i64[n] -> f64"),
        (f"{ENUM}enum e a, enum e *b", "a: i32, b: i32[n] -> f64"),
        ("double **a", "scratch a: i64[3] -> f64"),
        ("double (*a)[3][4], double b[][2]", "a: f64[n,3,4], b: f64[n,2] -> f64"),
        ("long double *a", "a: u8[n,16] -> f64"),
        ("unsigned long n, double *a", "n: i64, a: f64[n] -> f64"),
        ("const unsigned long *n, double *a", "n: i64[], a: f64[n] -> f64"),
        ("double *const a", "out a: f64[3] -> f64"),
        (f"{SEVERAL}struct d a, double x", "a: f64[4], x: f64 -> f64"),
        (f"{BOXED}struct b a", "a: f64[n] -> f64"),
        ("struct w { double v; };struct w a", "a: f64 -> f64"),
        ("unsigned short *a, short *b", "a: bf16[n], b: f16[n] -> f64"),
        ("double _Complex *a, float *b", "a: f64[n,2], b: c64[n] -> f64"),
        ("double _Complex *a, double b[][2]", "a: f64[4*n+2*m], b: c128[n] -> f64"),
        ("double _Complex *a, double *const *b", "a: f64[n,m], inout b: f64[n][m] -> f64"),
        (f"{OWNER}const struct v *a", "inout a: {n: i64, d: f64[n]*}* -> f64"),
        ("double a[][3], double _Complex b[][2], double c[][3]", "a: f64[n*3], b: f64[n,4], c: f64[m] -> f64"),
    ],
)
def test_what_is_right_in_more_than_one_way(declaration: str, signature: str) -> None:
    types, _, parameters = declaration.rpartition(";")
    fits(f"{types};double f({parameters}) {{ return 0; }}", signature)


@pytest.mark.parametrize(
    ("declaration", "signature", "found"),
    [
        ("double **a", "a: f64[n,n] -> f64", "`double **`, which leads to pointers"),
        ("const double *const *a", "a: f64[n,n] -> f64", "`const double *const *`, which leads to pointers"),
        ("const double *(*a)[3]", "a: f64[3] -> f64", "leads to pointers"),
        ("double (*a)(double)", "a: f64[n] -> f64", "a function"),
        (f"{MIXED}const struct r *a", "a: f64[n,2] -> f64", "a structure whose member `c.b` is `int`"),
        (f"{OWNER}struct v *a", "a: i64[2] -> f64", "a structure whose member `d` is `double *`"),
        (f"{POINT}struct p *a", "a: f32[n,4] -> f64", "a structure whose member `x` is `double`"),
        (f"{POINT}struct p a", "a: f64[2] -> f64", "a structure that is passed by value"),
        ("struct q { int b, c; };struct q a", "a: i64 -> f64", "a structure that is passed by value"),
        (f"{UNION}union u *a", "a: f32[n] -> f64", "`u *`"),
        ("unsigned *a", "a: i32[n] -> f64", "`unsigned int *`"),
        ("unsigned long a", "a: i64 -> f64", "`unsigned long`"),
        ("const long *a", "a: u64[n] -> f64", "`const long *`"),
        ("signed char *a", "a: f32[n] -> f64", "`signed char *`"),
        ("long double *a", "a: f64[n] -> f64", "`long double *`, which no dtype is"),
        ("const double *a", "out a: f64[3] -> f64", "`const double *`, where it cannot write"),
        ("const double a[][3]", "out a: f64[2,3] -> f64", "where it cannot write"),
        ("const double *a", "inout a: f64[n] -> f64", "`const double *`, where it cannot write"),
        ("typedef const double fixed;fixed *a", "out a: f64[3] -> f64", "`fixed *`, a pointer to const, where"),
        ("const double *const *a", "inout a: f64[n][n] -> f64", "`const double *const *`"),
        (f"{POINT}const struct p *a", "inout a: {x: f64, y: f64}* -> f64", "where it cannot write"),
        (f"{POINT}const struct p *a", "a: {x: f64, inout y: f64}* -> f64", "where it cannot write"),
        ("int a, double *b", "a: u32, b: f64[a] -> f64", "is `int`"),
        ("double _Complex *a", "a: f64[n] -> f64", "an array whose elements are 2 numbers each: `complex *`"),
        ("long *a, double b", "a: status[], b: f64 -> f64", "`long *`"),
        ("double *a, double b", 'a: "text", b: f64 -> f64', "`double *`"),
        (f"{POINT}struct p *a", "a: f64[] -> f64", "elements are 2 numbers each: `p *`"),
        ("double a[][3], int n", "a: f64[n], n: i32 -> f64", "rows have another length"),
        ("double a[][3]", "a: f64[4] -> f64", "rows have another length"),
        ("double ***a", "a: f64[n][m] -> f64", "`double ***`"),
        ("double (*a)[3]", "a: f64[n][3] -> f64", "`double[3] *`"),
        ("_Bool a", "a: i32 -> f64", "`_Bool`"),
        ("double a", "a: null -> f64", "`double`"),
        ("double a[][3]", "a: f64[n,4] -> f64", "rows have another length: `double[3] *`"),
        ("typedef double r[3]; typedef r m[2];m *a", "a: f64[n,3,2] -> f64", "rows have another length: `m *`"),
    ],
)
def test_what_debug_information_tells(declaration: str, signature: str, found: str) -> None:
    types, _, parameters = declaration.rpartition(";")
    with pytest.raises(SignatureError) as caught:
        fits(f"{types};double f({parameters}) {{ return 0; }}", signature)
    assert found in caught.value.cause
    assert "`a`" in caught.value.cause
    assert "kernel.c:1: double f(" in (caught.value.place or "")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("declaration", "signature", "remedy"),
    [
        ("double _Complex a", "a: c64 -> f64", "`a: c128`"),
        ("double _Complex a", "a: f64[2] -> f64", "`a: c128`"),
        ("unsigned long a", "a: i32 -> f64", "`a: u64`"),
        ("double (*a)(double)", "a: f64 -> f64", "`a: fn(name)`"),
        ("struct p { double x, y; };struct p a", "a: {x: f64, y: f64}* -> f64", "by value `{...}`"),
    ],
)
def test_the_remedy_is_what_the_source_has(declaration: str, signature: str, remedy: str) -> None:
    types, _, parameters = declaration.rpartition(";")
    with pytest.raises(SignatureError, match="`a") as caught:
        fits(f"{types};double f({parameters}) {{ return 0; }}", signature)
    assert remedy in (caught.value.remedy or "")


FUNCTIONS = """
enum kind { ONE, TWO };
double once(double x) { return x; }
double twice(double x, double y) { return x * y; }
double single(float x) { return x; }
double pointed(double *x) { return *x; }
void nothing(double x) {}
int whole(double x) { return x; }
double kinds(enum kind k) { return k; }
double named(int k) { return k; }
"""


@pytest.mark.parametrize(
    ("parameter", "passed", "fits_it"),
    [
        ("double (*g)(double)", "once", True),
        ("double (*g)(const double)", "once", True),
        ("double (*g)()", "twice", True),
        ("double (*g)(double, ...)", "twice", True),
        ("void (*g)(double)", "whole", True),
        ("double g(double)", "once", True),
        ("double (*g)(void *)", "pointed", True),
        ("double (*g)(enum kind)", "named", True),
        ("double (*g)(unsigned)", "kinds", True),
        ("void *g", "twice", True),
        ("double (*g)(double)", "twice", False),
        ("double (*g)(double, double)", "once", False),
        ("double (*g)(double)", "single", False),
        ("double (*g)(double)", "pointed", False),
        ("double (*g)(double)", "nothing", False),
        ("double (*g)(double)", "whole", False),
        ("double (*g)(double)", "named", False),
    ],
)
def test_functions_are_passed_for_what_they_are_called_as(parameter: str, passed: str, fits_it: bool) -> None:
    source = f"{FUNCTIONS}double f({parameter}) {{ return 0; }}"
    signature = f"g: fn({passed}) -> f64"
    if fits_it:
        fits(source, signature)
        return
    with pytest.raises(SignatureError, match=f"`{passed}` is a function `.*called as `.*\\(") as caught:
        fits(source, signature)
    assert caught.value.remedy


def test_rows_are_as_long_as_in_the_source() -> None:
    rows = "double f(double x[][3]) { return x[1][1]; }"
    bound(rows, "x: f64[n,m] -> f64", {"n": 2, "m": 3})
    with pytest.raises(SignatureError, match=r"\(m = 4, n = 2\), but.*\n.*\n.*declare it as `x: f64\[n,3\]`"):
        bound(rows, "x: f64[n,m] -> f64", {"n": 2, "m": 4})
    whole = "double f(double (&x)[2][3]) { return x[1][1]; }"
    bound(whole, "x: f64[2,3] -> f64", lang="c++")
    with pytest.raises(SignatureError, match=r"""give `order="F"`, or declare it as `x: f64\[2,3\]`"""):
        bound(whole, "x: f64[3,2] -> f64", lang="c++")
    fortran = "double precision function f(x)\n  double precision :: x(3, 4)\n  f = x(2, 1)\nend function\n"
    bound(fortran, "x: f64[4,3] -> f64", lang="fortran")
    with pytest.raises(SignatureError, match=r"""`real\(kind=8\)\[3\]\[4\]`"""):
        bound(fortran, "x: f64[3,4] -> f64", lang="fortran")


@pytest.mark.parametrize("members", ["virtual double g() { return a; } double a;", "shown(); double a; int k;"])
def test_classes_that_are_made_elsewhere(members: str) -> None:
    source = f'struct shown {{ {members} }}; extern "C" double f(shown *p) {{ return p->a; }}'
    with pytest.raises(SignatureError, match="a structure whose member"):
        fits(source, "p: f64[2] -> f64", "c++")


def test_classes_that_are_only_handed_on() -> None:
    source = """
    struct pair { double a; int k; };  struct holder { pair *p; };  double other(holder *);
    extern "C" double f(holder *h) { return other(h); }
    """
    with pytest.raises(SignatureError, match="a structure whose member") as told:
        fits(source, "h: f64[2] -> f64", "c++")
    assert "je.suggest_signature writes them" in (told.value.remedy or "")


def test_classes_of_headers_are_described_where_a_function_is_given_one_of_them() -> None:
    source = """
    #include <map>
    struct shown {{ shown(); double a; }};
    extern "C" double f({}) {{ std::map<int, double> m; return m[1]; }}
    """
    plain, given = (load(source.format(p), "f", "c++").ir for p in ("double *x", "shown *x"))
    assert len(given) > 1.1 * len(plain)


def test_the_sign_of_a_result() -> None:
    with pytest.raises(SignatureError, match=r"says `-> i32`, but `f` returns `unsigned int`"):
        fits("unsigned f(double x) { return x; }", "x: f64 -> i32")


def test_classes_of_c_plus_plus() -> None:
    plain = "struct base { double a; static int count; double g() const { return a; } }; struct p : base { double b; };"
    fits(f'{plain} extern "C" double f(const p &x) {{ return x.b + x.g(); }}', "x: f64[2] -> f64", "c++")
    mixed = plain.replace("double b;", "long b;")
    with pytest.raises(SignatureError, match="`const p &`, a structure whose member `b` is `long`"):
        fits(f'{mixed} extern "C" double f(const p &x) {{ return x.b + x.g(); }}', "x: f64[2] -> f64", "c++")


def test_without_debug_information() -> None:
    source = "define double @f(i64 %n, ptr %x) {\n  %v = load double, ptr %x\n  ret double %v\n}\n"
    function = bound(source, "n: i64, x: f64[n] -> f64", {"n": 2}, lang="llvm")
    result = np.zeros(())
    run(function, np.array([3.0, 4.0]), result)
    assert result == 3
    with pytest.raises(SignatureError, match="means int, but in the source parameter 1 is long"):
        bound(source, "n: i32, x: f64[n] -> f64", {"n": 2}, lang="llvm")
    with pytest.raises(SignatureError, match="defines no function `g`"):
        bind(reader.parse(source), "g", parse("x: f64 -> f64"), Binding())
