"""Marked loops keep a header and an end of their own while LLVM optimises.

    before    outer: br label %inner                        LLVM's, of both       inner: ... br i1 %more, label %inner,
              inner: ... br i1 %more, label %inner, label %last                                     label %last
              last:  br i1 %again, label %outer, label %end                       last:  br i1 %again, label %inner,
                                                                                                    label %end
    after     outer: call void @llvm.sideeffect()
                     br label %inner
              last:  call void @llvm.sideeffect() #0        attributes #0 = { convergent }
                     br i1 %again, label %outer, label %end

Behind the vectorisers LLVM folds blocks that do nothing, headers of loops as well. Of `while (e > tol) { e = 0; for
(...) }` it makes one loop, and nothing can be said of that which is said of the one inside. The call is of no function,
touches no memory, and is gone before anything else looks at the module. A function that stays one of its own has none,
nor what it calls: it would no longer be one that only reads.

Behind the loop there is another one, which must not be copied: where `if (d > tol) ok = 0` in the loop says what is
asked behind it, LLVM would follow that answer through the end of the iteration, and make a nest of loops of one.

An end of an iteration in which nothing is computed has a call too, as where Numba asks in front of it whether a
function that was called has failed. LLVM would have that branch close the loop, with the loop's mark, and make another
one where it finds out that nothing fails.
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.marks import Mark, has_marks, marks_of
from jax_enzyme.ir.module import Module, callee_name, callee_of, declare
from jax_enzyme.ir.reach import reached

_CALL = "llvm.sideeffect"


def keep_headers(module: Module, root: str) -> None:
    """Makes, in place, such calls in front of the marked loops of a module that is marked for inlining."""
    if not has_marks(module):
        return
    apart = [f for f in module.functions.values() if f.name != root and "alwaysinline" not in f.attributes]
    within = reached(apart, lambda f: [c for c in map(callee_of, f.instructions()) if c is not None])
    for function in [f for f in module.functions.values() if f.blocks and f not in within]:
        for loop in Loops.of(function):
            if _is_marked(module, loop) and not _is_marked(module, loop.parent) and loop.preheader is not None:
                _call(module, loop)


def forget_headers(module: Module) -> None:
    """Takes such calls away, in place."""
    if module.functions.pop(_CALL, None) is None:
        return
    for function in module.functions.values():
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if callee_name(i) != _CALL]


def _is_marked(module: Module, loop: Loop | None) -> bool:
    return loop is not None and any(Mark.PARALLEL in marks_of(module, b.terminator) for b in loop.latches)


def _call(module: Module, loop: Loop) -> None:
    keeps = declare(module, _CALL, T.FunctionType(T.VOID, ()))
    Builder.at_end(loop.front).call(keeps, [])
    for latch in loop.latches:
        if all(isinstance(i, I.Load | I.Store) or i.is_terminator for i in latch.instructions):
            Builder.at_end(latch).call(keeps, [])
    for block in loop.exits:
        if not any(isinstance(i, I.LandingPad) for i in block.instructions):
            Builder.behind_phis(block).call(keeps, [], attributes=("convergent",))
