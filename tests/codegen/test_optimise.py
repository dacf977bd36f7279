"""The last optimisation uses this machine's vectors, and no fast arithmetic that nobody asked for."""

from __future__ import annotations

import re

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.object import build_function, compiled, entry_module
from jax_enzyme.codegen.optimise import assembly, optimised_text
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends.elf import undefined_symbols
from jax_enzyme.ir.arrays import ArrayFunction, Buffer
from jax_enzyme.ir.reader import parse
from jax_enzyme.options import Options
from tests.codegen.support import array_function, elementwise, vector
from tests.support.native import call

_SQUARE = elementwise("%y = fmul double %x, %x", 1024)
# A function as clang leaves it: for a processor without AVX, and bound to 128 bits.
_CLANG = _SQUARE.replace("ptr noalias %out) {", "ptr noalias %out) #0 {") + (
    'attributes #0 = { "target-cpu"="x86-64" "target-features"="+sse2" "min-legal-vector-width"="0" }\n'
)
_SUM = """
define i64 @je.primal(ptr noalias %in, ptr noalias %out) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %t, %loop ]
  %from = getelementptr inbounds double, ptr %in, i64 %i
  %x = load double, ptr %from
  %t = fadd double %s, %x
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %done

done:
  store double %t, ptr %out
  ret i64 0
}
"""


def _square(text: str) -> ArrayFunction:
    return array_function(text, vector("x", 1024), vector("y", 1024, "out"))


_ROWS = """
define i64 @je.primal(ptr noalias %in, ptr noalias %out) {
entry:
  br label %rows
rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row.done ]
  %before = sub nuw nsw i64 %i, 1
  %is.first = icmp eq i64 %i, 0
  %around = select i1 %is.first, i64 49, i64 %before
  %start = mul nuw nsw i64 %i, 1000
  %own = getelementptr inbounds double, ptr %out, i64 %start
  %start.other = mul nuw nsw i64 %around, 1000
  %other = getelementptr inbounds double, ptr %out, i64 %start.other
  br label %row
row:
  %j = phi i64 [ 0, %rows ], [ %j.next, %row ]
  %there = getelementptr inbounds double, ptr %other, i64 %j
  %x = load double, ptr %there
  %u = fadd double %x, 1.0
  store double %u, ptr %there
  %here = getelementptr inbounds double, ptr %own, i64 %j
  %y = load double, ptr %here
  %z = fadd double %y, 2.0
  store double %z, ptr %here
  %j.next = add nuw nsw i64 %j, 1
  %more = icmp ult i64 %j.next, 900
  br i1 %more, label %row, label %row.done
row.done:
  %i.next = add nuw nsw i64 %i, 1
  %again = icmp ult i64 %i.next, 50
  br i1 %again, label %rows, label %done
done:
  ret i64 0
}
"""


@pytest.mark.parametrize("is_derivative", [False, True])
def test_a_derivative_compares_the_addresses_of_each_row_alone(is_derivative: bool) -> None:
    function = array_function(_ROWS, vector("x", 1), vector("y", 50_000, "inout"))
    module = parse(optimised_text(entry_module(function), is_derivative=is_derivative))
    root = next(f for f in module.functions.values() if any("bound" in i.name for i in f.instructions()))
    (loop,) = Loops.of(root).roots
    inside = {i for block in loop.blocks for i in block.instructions}
    compared = [o for i in inside if "bound" in i.name for o in i.operands]
    assert compared
    assert inside.issuperset(compared) == is_derivative


@pytest.mark.skipif(not host().has("avx"), reason="vectors of four numbers")
def test_what_no_vector_divides_is_left_to_vectors_and_not_to_masks() -> None:
    optimised = optimised_text(
        entry_module(
            array_function(elementwise("%y = fmul double %x, %x", 14), vector("x", 14), vector("y", 14, "out"))
        )
    )
    assert "llvm.masked" not in optimised
    assert re.search("fmul <[48] x double>", optimised)


@pytest.mark.parametrize("text", [_SQUARE, _CLANG], ids=["plain", "for another processor"])
def test_vectors_are_as_wide_as_the_machines(text: str) -> None:
    # Some processors with 512-bit registers are faster with 256 bits, and LLVM knows which.
    lanes = "[48]" if host().has("avx512f") else "4" if host().has("avx") else "2"
    optimised = optimised_text(entry_module(_square(text)))
    assert re.search(f"fmul <{lanes} x double>", optimised)
    assert "x86-64" not in "".join(re.findall(r'"target-cpu"="[^"]*"', optimised))


def test_vectors_are_as_wide_as_the_options_say() -> None:
    optimised = optimised_text(entry_module(_square(_SQUARE)), Options(vector_width=128))
    assert re.search("fmul <2 x double>", optimised)
    assert not re.search("<[48] x double>", optimised)


def test_noalias_needs_no_check_at_run_time() -> None:
    optimised = optimised_text(entry_module(_square(_SQUARE)))
    assert "vector.memcheck" not in optimised
    assert not host().has("avx") or re.search("%[yz]mm", assembly(entry_module(_square(_SQUARE))))


def test_a_sum_is_reordered_only_with_fast_math() -> None:
    function = array_function(_SUM, vector("x", 1024), Buffer("s", "f64", (), "out", zero=True))
    assert "vector.reduce" not in optimised_text(entry_module(function))
    assert "vector.reduce.fadd" in optimised_text(entry_module(function), Options(fast_math=True))
    x = np.random.default_rng(1).normal(size=1024)
    assert call(build_function(function), [x])[0] == np.add.accumulate(x)[-1]
    assert np.isclose(call(build_function(function, Options(fast_math=True)), [x])[0], x.sum(), rtol=1e-12)


def test_sums_of_long_blocks_keep_their_order() -> None:
    terms = "".join(f"  %s{i + 1} = fadd reassoc nsz double %s{i}, %x\n" for i in range(2500))
    text = f"define double @f(double %s0, double %x) {{\n{terms}  ret double %s2500\n}}\n"
    assert len(re.findall(r"fadd nsz double", optimised_text(parse(text)))) == 2500


def _loop(number: int) -> str:
    """Four iterations over `x` that wait for one another."""
    terms = "\n".join(
        f"  %y{number}.{k + 1} = call double @llvm.fma.f64(double %y{number}.{k}, double %v{number}, double {k}.5)"
        for k in range(45)
    )
    before = f"loop{number - 1}" if number else "entry"
    return f"""
loop{number}:
  %i{number} = phi i64 [ 0, %{before} ], [ %next{number}, %loop{number} ]
  %y{number}.0 = phi double [ 0.0, %{before} ], [ %y{number}.45, %loop{number} ]
  %p{number} = getelementptr double, ptr %x, i64 %i{number}
  %v{number} = load double, ptr %p{number}
{terms}
  store double %y{number}.45, ptr %p{number}
  %next{number} = add i64 %i{number}, 1
  %more{number} = icmp ult i64 %next{number}, 4
  br i1 %more{number}, label %loop{number}, label %loop{number + 1}
"""


def test_loops_of_long_functions_make_no_block_that_grows_with_their_number() -> None:
    longest: list[int] = []
    for count in (40, 100, 200):
        loops = "".join(map(_loop, range(count)))
        head = "define void @f(ptr %x) {\nentry:\n  br label %loop0\n"
        end = f"\nloop{count}:\n  ret void\n}}\ndeclare double @llvm.fma.f64(double, double, double)\n"
        optimised = parse(optimised_text(parse(head + loops + end)))
        longest.append(max(len(block.instructions) for block in optimised.functions["f"].blocks))
    assert longest[0] > 40 * 4 * 45 // 2 and longest[1] == longest[2] < 100


def test_nothing_reaches_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    text = """
define i64 @je.primal(ptr noalias %x, ptr noalias %y) !dbg !4 {
entry:
  br label %loop, !dbg !7

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1, !dbg !7
    #dbg_value(i64 %next, !8, !DIExpression(), !7)
  %p = getelementptr i8, ptr %y, i64 %i
  store i8 3, ptr %p, !dbg !7
  %more = icmp ult i64 %next, 8
  br i1 %more, label %loop, label %done, !dbg !7, !llvm.loop !9

done:
  ret i64 0, !dbg !7
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "k.c", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DISubroutineType(types: !6)
!4 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!6 = !{null}
!7 = !DILocation(line: 2, column: 1, scope: !4)
!8 = !DILocalVariable(name: "i", scope: !4, file: !1, line: 2)
!9 = distinct !{!9, !7, !10}
!10 = !{!"llvm.loop.unroll.disable"}
"""
    function = array_function(text, vector("x", 1), Buffer("y", "u8", (8,), "out", zero=True))
    optimised = optimised_text(entry_module(function))
    assert "DILocation" not in optimised and "#dbg" not in optimised
    assert call(build_function(function), [np.zeros(1)])[0].tolist() == [3] * 8
    captured = capfd.readouterr()
    assert captured.err == "" and captured.out == ""


def test_invalid_ir_is_an_error_of_ours() -> None:
    function = _square(_SQUARE)
    function.module.functions["je.primal"].blocks[-1].instructions.pop()
    with pytest.raises(LoweringError, match="LLVM rejects"):
        build_function(function)


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f32"), ("double", "f64")])
def test_numbers_are_rounded_to_bfloat_on_every_processor(kind: str, dtype: str) -> None:
    tie, step = 1 + 2.0**-8, 2.0**-40
    exact = [0.0, -0.0, 1.0, tie, 1 + 3 * 2.0**-8, -tie, tie + step, tie - step, -tie - step, np.pi, 3.4e38, -3.3e38]
    near = [0.0, -0.0, 1.0, 1.0, 1 + 2.0**-6, -1.0, 1 + 2.0**-7, 1.0, -1 - 2.0**-7, 3.140625, np.inf, -3.296e38]
    exact += [2.0**-133, 1.5 * 2.0**-133, -0.75 * 2.0**-133, 2.0**-134, 1e-60, np.inf, -np.inf, np.nan]
    near += [2.0**-133, 2.0**-132, -(2.0**-133), 0.0, 0.0, np.inf, -np.inf, np.nan]
    x, expected = np.array(exact), np.array(near)
    if kind == "float":  # it has no place for the steps
        x, expected[[6, 8]] = x.astype(np.float32), [1.0, -1.0]
    text = elementwise(f"%r = fptrunc {kind} %x to bfloat\n  %y = fpext bfloat %r to {kind}", x.size, kind)
    function = array_function(text, vector("x", x.size, dtype=dtype), vector("y", x.size, "out", dtype))
    assert not [name for name in undefined_symbols(compiled(function, Options()).code) if name.endswith("bf2")]
    np.testing.assert_allclose(call(build_function(function), [x])[0], expected, rtol=1e-3, atol=0)


@pytest.mark.parametrize(
    "mask",
    [
        "%m = icmp ne <8 x i8> %b, zeroinitializer",
        "%e = icmp eq <8 x i8> %b, zeroinitializer\n  %m = xor <8 x i1> %e, splat (i1 true)",
        "%n = icmp ne <8 x i8> %b, zeroinitializer\n  %c = icmp ne <8 x i64> %w, zeroinitializer\n"
        "  %m = and <8 x i1> %n, %c",
        "%m = icmp ne <8 x i64> %w, zeroinitializer",
    ],
    ids=["bytes", "inverted", "joined", "words"],
)
def test_masked_accesses_of_eight_bytes_touch_no_more(mask: str) -> None:
    """As they are when a loop with a branch has become vectors: what is behind the eight stays, and is not read."""
    text = f"""
    declare void @llvm.masked.store.v8i8.p0(<8 x i8>, ptr, <8 x i1>)
    declare <8 x i8> @llvm.masked.load.v8i8.p0(ptr, <8 x i1>, <8 x i8>)
    define i64 @je.primal(ptr noalias %x, ptr noalias %w.in, ptr noalias %y) {{
      %old = load <32 x i8>, ptr %x
      store <32 x i8> %old, ptr %y
      %at = getelementptr i8, ptr %x, i64 8
      %b = load <8 x i8>, ptr %at
      %w = load <8 x i64>, ptr %w.in
      {mask}
      %v = call <8 x i8> @llvm.masked.load.v8i8.p0(ptr align 1 %x, <8 x i1> %m, <8 x i8> splat (i8 7))
      %z = add <8 x i8> %v, splat (i8 1)
      %to = getelementptr i8, ptr %y, i64 4
      call void @llvm.masked.store.v8i8.p0(<8 x i8> %z, ptr align 1 %to, <8 x i1> %m)
      ret i64 0
    }}"""
    function = array_function(text, vector("x", 4), vector("w", 8), vector("y", 4, "out"))
    assert not re.search("call .*v8i8", optimised_text(entry_module(function)))
    chosen = np.array([1, 0, 1, 1, 0, 0, 1, 0], np.uint8)
    given = np.concatenate([np.arange(11, 19), 5 * chosen, np.arange(31, 47)]).astype(np.uint8)
    expected = given.copy()
    expected[4:12] = np.where(chosen, given[:8] + 1, given[4:12])
    found = call(build_function(function), [given.view(np.float64), chosen.astype(np.int64).view(np.float64)])[0]
    np.testing.assert_array_equal(found.view(np.uint8), expected)


def test_numbers_are_not_gathered_before_they_are_stored() -> None:
    """LLVM 22's vectoriser of straight-line code did that to the tangents, on processors that can gather."""
    source = """void turned(const long *mask, const double *b, double *c) {
      double s[16];
      for (int y = 0; y < 8; y++) for (int x = 0; x < 2; x++) s[x * 8 + y] = b[x + 2 * y];
      for (long y = 0; y < 8; y++) for (int x = 0; x < 2; x++) {
        double v = 0;
        for (int p = 0; p < 4; p++) v += s[(y + 6) & mask[0]] * s[y + 8 * x];
        c[x + 2 * y] = v;
      }
    }"""
    kernel = je.kernel(source, "turned", "mask: i64[1], b: f64[32], out c: f64[16]", lang="c")
    je.check_grads(lambda b: kernel(np.array([7]), b), (np.random.default_rng(0).normal(size=32),))
