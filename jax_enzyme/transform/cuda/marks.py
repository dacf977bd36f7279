"""The functions that stand for what only a group of threads gives a meaning: indices, and points of synchronisation.

An *index* is a pure function without arguments, such as `i32 je.tid.x()`. A *meeting* is a call that all members of a
group come to before any goes on: `void je.meet.block()`. A meeting with a vote takes an i32 and returns one.
"""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.module import Function, Module, callee_name, declare
from jax_enzyme.ir.values import Argument

AXES = ("x", "y", "z")
THREADS = tuple(f"je.tid.{axis}" for axis in AXES)
BLOCKS = tuple(f"je.ctaid.{axis}" for axis in AXES)
GRID = tuple(f"je.nctaid.{axis}" for axis in AXES)
"""The extents of a grid that only the run knows."""
EXTENTS = tuple(f"je.ntid.{axis}" for axis in AXES)
"""Those of a block that only the run knows."""
WARP = "je.warp"
LANE = "je.lane"
INDICES = frozenset((*THREADS, *BLOCKS, *GRID, *EXTENTS, WARP, LANE))

MEET_WARP = "je.meet.warp"
MEET_BLOCK = "je.meet.block"
MEET_GRID = "je.meet.grid"

SHUFFLE = "je.shuffle"
SHUFFLE_SUM = "je.shuffle.sum"
"""The sum of what the lanes of a mask have, in place of one lane's."""

STEP = "je.step"
"""A call in front of a volatile access, which LLVM may not double: the lanes that are there may have to meet."""

SETTLED = "je.settled"
"""A call that keeps LLVM from merging what lies before it with what lies behind."""

SHARED_ADDRESS = "je.shared.address"
"""A call that gives the pointer of a number that inline PTX takes for an address in shared memory."""

LAUNCHED = "je.kernel."
"""What the names of kernels that a host function launches begin with."""

ALIASED = '"je.aliased"'
"""An attribute of pointer parameters that may lead to memory which a kernel reaches by other ways too."""

CONVERGENT = ("convergent", "nounwind", "willreturn", "memory(inaccessiblemem: readwrite)")

_PURE = ("nocallback", "nofree", "nosync", "nounwind", "speculatable", "willreturn", "memory(none)")


def index(module: Module, name: str, extent: int) -> Function:
    """The declaration of an index, which is less than `extent`."""
    if name not in module.functions:
        known = (f"range(i32 0, {extent})",)
        kind = T.FunctionType(T.I32, ())
        module.functions[name] = Function(T.PTR, kind, return_attributes=known, attributes=_PURE, name=name)
    return module.functions[name]


def shared_address(module: Module) -> Function:
    """The declaration of what makes pointers of addresses in shared memory."""
    return declare(module, SHARED_ADDRESS, T.FunctionType(T.PTR, (T.I32,)), ("nounwind", "willreturn", "memory(none)"))


def reads_only(base: object) -> bool:
    """Whether memory that a pointer leads to is never written by the kernel that it is a parameter of."""
    return isinstance(base, Argument) and "readonly" in base.attributes and ALIASED not in base.attributes


def meeting(module: Module, name: str, vote: str = "") -> Function:
    """The declaration of a meeting, `name` being that of its group."""
    kind = T.FunctionType(T.I32, (T.I32,)) if vote else T.FunctionType(T.VOID, ())
    return declare(module, f"{name}.{vote}" if vote else name, kind, ("convergent", "nounwind"))


def is_meeting(instruction: Instruction) -> bool:
    """Whether this is a meeting of any group."""
    return callee_name(instruction).startswith("je.meet.")


def group_of(instruction: Instruction) -> str:
    """The group that meets: `je.meet.warp`, `je.meet.block` or `je.meet.grid`."""
    return ".".join(callee_name(instruction).split(".")[:3])


def vote_of(instruction: Instruction) -> str:
    """What a meeting votes on, or nothing."""
    return callee_name(instruction)[len(group_of(instruction)) + 1 :]


def neutral_vote(meeting: Instruction) -> int:
    """The vote that changes nothing. All bytes of a word may be it: any bit is a vote in favour."""
    return 1 if vote_of(meeting) in ("and", "all") else 0
