"""Addresses in vectors, as an optimiser keeps the pointers of a `std::deque`: each lane has its own shadow."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way

BODY = """
define void @k(ptr %x, ptr %y) {
entry:
  START
  br label %fill
fill:
  %i = phi i64 [ 0, %entry ], [ %i1, %fill ]
  %turned = phi <2 x ptr> [ BOTH, %entry ], [ %swapped, %fill ]
  %swapped = shufflevector <2 x ptr> %turned, <2 x ptr> poison, <2 x i32> <i32 1, i32 0>
  %xi = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %xi, align 8
  %w = fmul double %v, %v
  %s = fmul double %w, %v
  %p = extractelement <2 x ptr> %turned, i64 0
  %q = extractelement <2 x ptr> %turned, i64 1
  %pi = getelementptr double, ptr %p, i64 %i
  %qi = getelementptr double, ptr %q, i64 %i
  store double %w, ptr %pi, align 8
  store double %s, ptr %qi, align 8
  %i1 = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %i1, 4
  br i1 %more, label %fill, label %read
read:
  %j = phi i64 [ 0, %fill ], [ %j1, %read ]
  %j1 = add nuw nsw i64 %j, 1
  %aj = getelementptr double, ptr FIRST, i64 %j
  %u = load double, ptr %aj, align 8
  %yj = getelementptr double, ptr %y, i64 %j
  store double %u, ptr %yj, align 8
  %again = icmp ult i64 %j1, 4
  br i1 %again, label %read, label %end
end:
  ret void
}
"""
LOCAL = """%a = alloca [4 x double], align 8
  %b = alloca [4 x double], align 8
  %one = insertelement <2 x ptr> poison, ptr %a, i64 0
  %both = insertelement <2 x ptr> %one, ptr %b, i64 1"""
GLOBAL = """
@a = internal global [4 x double] zeroinitializer, align 8
@b = internal global [4 x double] zeroinitializer, align 8
"""

MEMBERS = """
declare ptr @malloc(i64)
define void @k(ptr %x, ptr %y) {
entry:
  %a = call ptr @malloc(i64 64)
  br label %fill
fill:
  %i = phi i64 [ 0, %entry ], [ %i1, %fill ]
  %o = mul i64 %i, 16
  %o1 = add i64 %o, 8
  %first = insertelement <2 x i64> poison, i64 %o, i64 0
  %offsets = insertelement <2 x i64> %first, i64 %o1, i64 1
  %members = getelementptr i8, ptr %a, <2 x i64> %offsets
  %number = extractelement <2 x ptr> %members, i64 0
  %pointer = extractelement <2 x ptr> %members, i64 1
  %xi = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %xi, align 8
  %w = fmul double %v, %v
  store double %w, ptr %number, align 8
  %j = sub i64 3, %i
  %xj = getelementptr double, ptr %x, i64 %j
  store ptr %xj, ptr %pointer, align 8
  %i1 = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %i1, 4
  br i1 %more, label %fill, label %read
read:
  %k = phi i64 [ 0, %fill ], [ %k1, %read ]
  %d = getelementptr { double, ptr }, ptr %a, i64 %k
  %e = getelementptr { double, ptr }, ptr %a, i64 %k, i32 1
  %n = load double, ptr %d, align 8
  %p = load ptr, ptr %e, align 8
  %u = load double, ptr %p, align 8
  %s = fmul double %n, %u
  %yk = getelementptr double, ptr %y, i64 %k
  store double %s, ptr %yk, align 8
  %k1 = add nuw nsw i64 %k, 1
  %again = icmp ult i64 %k1, 4
  br i1 %again, label %read, label %end
end:
  ret void
}
"""


def source(start: str, both: str, first: str) -> str:
    return BODY.replace("START", start).replace("BOTH", both).replace("FIRST", first)


@pytest.mark.parametrize(
    "text",
    [source(LOCAL, "%both", "%a"), GLOBAL + source("", "<ptr @a, ptr @b>", "@a"), MEMBERS],
    ids=["local variables", "file-scope variables", "members of records"],
)
def test_every_lane_has_its_own_shadow(text: str) -> None:
    kernel = native(text, "k", "x: f64[n], out y: f64[n]", {"n": 4}, "llvm")
    agree(three_way(kernel, [np.array([0.5, 1.2, -0.7, 2.0])]))
