"""Loops of which a range does something, run as machine code before and after, and beside what the conditions say."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.codegen.jit import jit
from jax_enzyme.codegen.optimise import object_code
from jax_enzyme.ir.instructions import CondBranch
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.cuda.guarded_loops import narrow_guarded_loops

ORDERS = ("slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "eq", "ne")
COUNT = 12
_NUMPY = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def loop(number: int, order: str, swapped: bool, skips: bool, joined: bool) -> str:
    """One loop. `joined` to a condition that is the same for all, by what makes both necessary to work. Half of them
    go from the last number down to `first`, and some ask for the last number in it."""
    sides = "%limit, %s{0}" if swapped else "%s{0}, %limit"
    flags = "nsw" if order.startswith("s") else "nuw"
    both = "select i1 %c{0}, i1 true, i1 %same" if skips else "select i1 %c{0}, i1 %same, i1 false"
    targets = "label %latch{0}, label %work{0}" if skips else "label %work{0}, label %latch{0}"
    test = "%d{0}" if joined else "%c{0}"
    low = first(swapped, skips)
    up = (low, 1, f"%t{{0}}, {COUNT - 1}" if swapped else f"%n{{0}}, {COUNT}")
    start, step, last = (COUNT - 1, -1, f"%t{{0}}, {low}") if swapped != joined else up
    return (
        f"""
head{{0}}:
  %t{{0}} = phi i32 [ {start}, %pre{{0}} ], [ %n{{0}}, %latch{{0}} ]
  %s{{0}} = add {flags} i32 %t{{0}}, %offset
  %c{{0}} = icmp {order} i32 {sides}
  %d{{0}} = {both}
  br i1 {test}, {targets}
work{{0}}:
  %i{{0}} = add i32 %t{{0}}, {number * COUNT}
  %a{{0}} = getelementptr i8, ptr %y, i32 %i{{0}}
  store i8 1, ptr %a{{0}}
  br label %latch{{0}}
latch{{0}}:
  %n{{0}} = add i32 %t{{0}}, {step}
  %e{{0}} = icmp eq i32 {last}
  br i1 %e{{0}}, label %pre{{1}}, label %head{{0}}
pre{{1}}:
""".format(number, number + 1)
        + (f"  br label %head{number + 1}" if number + 1 < len(CASES) else "  ret void")
    )


def first(swapped: bool, skips: bool) -> int:
    return 2 if swapped and skips else 0


CASES = list(product(ORDERS, (False, True), (False, True), (False, True)))
TEXT = (
    "define void @f(ptr %y, i32 %offset, i32 %limit, i32 %p) {\n"
    "entry:\n  %same = icmp sgt i32 %p, 0\n  br label %pre0\npre0:\n  br label %head0\n"
    + "".join(loop(n, *case) for n, case in enumerate(CASES))
    + "\n}\n"
)


def expected(offset: int, limit: int, same: bool) -> tuple[np.ndarray, np.ndarray]:
    """What the loops write, and which of them are defined: sums may not wrap."""
    rows, defined = [], []
    for order, swapped, skips, joined in CASES:
        signed = order[0] == "s"
        wrapped = 0 if signed else 1 << 32
        least, bound = (v + wrapped if v < 0 else v for v in (offset, limit))
        sums = least + np.arange(COUNT, dtype=np.int64)
        pair = (bound, sums) if swapped else (sums, bound)
        holds = _NUMPY[order[-2:]](*pair)
        if joined:
            holds = (holds | same) if skips else (holds & same)
        rows.append((~holds if skips else holds) & (np.arange(COUNT) >= first(swapped, skips)))
        defined.append(sums[-1] < (1 << 31 if signed else 1 << 32))
    return np.array(rows), np.array(defined)


def test_ranges_of_all_orders() -> None:
    module = parse(TEXT)
    narrow_guarded_loops(module)
    assert sum(len(b.successors) == 2 for b in module.functions["f"].blocks if b.name.startswith("pre")) > 60
    code = jit().code(object_code(module, "f")[0], "f")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(code.address)
    edges = [0, 1, 2, 5, 11, 12, 13, 30, -1, -3, -12, -13, 2**31 - 1, -(2**31), 2**31 - 13]
    for offset, limit, same in product(edges, edges, (False, True)):
        y = np.zeros((len(CASES), COUNT), np.int8)
        call(y.ctypes.data, offset, limit, int(same))
        wanted, defined = expected(offset, limit, same)
        np.testing.assert_array_equal(y[defined], wanted[defined], f"{offset} {limit} {same}")


def test_a_guard_of_threads_is_gone() -> None:
    """As CUDA's threads ask: `x == 0 || y == 0 || x > 94`, of x in parts."""
    module = parse("""
define void @f(ptr %y, i64 %block, i1 %row) {
entry:
  %first = shl nuw nsw i64 %block, 5
  br label %head
head:
  %t = phi i64 [ 0, %entry ], [ %n, %latch ]
  %x = or disjoint i64 %t, %first
  %zero = icmp eq i64 %x, 0
  %a = select i1 %zero, i1 true, i1 %row
  %large = icmp samesign ugt i64 %x, 94
  %b = select i1 %a, i1 true, i1 %large
  br i1 %b, label %latch, label %work
work:
  %p = getelementptr i8, ptr %y, i64 %x
  store i8 1, ptr %p
  br label %latch
latch:
  %n = add nuw nsw i64 %t, 1
  %e = icmp eq i64 %n, 32
  br i1 %e, label %end, label %head
end:
  ret void
}""")
    narrow_guarded_loops(module)
    (narrowed,) = Loops.of(module.functions["f"])
    assert not isinstance(narrowed.header.terminator, CondBranch)
    code = jit().code(object_code(module, "f")[0], "f")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool)(code.address)
    y = np.zeros(96, np.int8)
    for block in range(3):
        call(y.ctypes.data, block, True)
        assert block or not y.any()
        call(y.ctypes.data, block, False)
    np.testing.assert_array_equal(y, (np.arange(96) > 0) & (np.arange(96) <= 94))


def test_what_is_added_up_is_handed_on() -> None:
    """By a loop that counts down, as one of a reverse sweep; also where nothing is left of it. Threads ask in one
    comparison whether they are between 0 and a limit, and whether they are not the last."""
    module = parse("""
define void @f(ptr %y, i64 %first) {
entry:
  br label %head
head:
  %t = phi i64 [ 15, %entry ], [ %n, %latch ]
  %sum = phi double [ 1.0, %entry ], [ %kept, %latch ]
  %x = add nsw i64 %t, %first
  %inside = icmp ult i64 %x, 20
  %last = icmp ne i64 %t, 15
  %a = and i1 %inside, %last
  br i1 %a, label %work, label %latch
work:
  %more = uitofp i64 %x to double
  %added = fadd double %sum, %more
  br label %latch
latch:
  %kept = phi double [ %added, %work ], [ %sum, %head ]
  %e = icmp eq i64 %t, 0
  %n = add nsw i64 %t, -1
  br i1 %e, label %end, label %head
end:
  %all = phi double [ %kept, %latch ]
  store double %all, ptr %y
  ret void
}""")
    narrow_guarded_loops(module)
    (narrowed,) = Loops.of(module.functions["f"])
    assert not isinstance(narrowed.header.terminator, CondBranch)
    code = jit().code(object_code(module, "f")[0], "f")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address)
    y = np.zeros(1)
    for first in (0, 3, 10, 19, 20, -1, -5, -14, -15, -40):
        call(y.ctypes.data, first)
        assert y[0] == 1 + sum(t + first for t in range(15) if 0 <= t + first < 20)


def test_a_sum_that_cannot_wrap_is_exact() -> None:
    """A reverse sweep goes over all numbers but the first again, and asks of the next one, in two branches."""
    module = parse("""
define void @f(ptr %y, i64 %limit) {
entry:
  br label %head
head:
  %t = phi i64 [ 0, %entry ], [ %x, %latch ]
  %x = add i64 %t, 1
  %c = icmp samesign ult i64 %x, %limit
  br i1 %c, label %inner, label %latch
inner:
  %w = trunc i64 %t to i32
  %z = add i32 %w, 1
  %d = icmp ult i32 %z, 20
  br i1 %d, label %work, label %latch
work:
  %p = getelementptr i8, ptr %y, i64 %x
  store i8 1, ptr %p
  br label %latch
latch:
  %e = icmp eq i64 %t, 30
  br i1 %e, label %end, label %head
end:
  ret void
}""")
    narrow_guarded_loops(module)
    (narrowed,) = Loops.of(module.functions["f"])
    assert [len(b.successors) for b in narrowed.blocks].count(2) == 1
    code = jit().code(object_code(module, "f")[0], "f")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address)
    for limit in (0, 1, 2, 31, 32, 99):
        y = np.zeros(33, np.int8)
        call(y.ctypes.data, limit)
        assert np.flatnonzero(y).tolist() == list(range(1, min(limit, 20)))
