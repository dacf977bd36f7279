"""What integers are for, as far as values go: to decide (to be compared, branched on and indexed with, whatever is
computed for it), or to be copied."""

from __future__ import annotations

from jax_enzyme.analysis.objects import call_effect, is_memory_free
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Uses, callee_name
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.effects import OF_ITS_KIND, Effect

_DECIDES = (I.Compare, I.Switch, I.CondBranch, I.GetElementPtr)

_NAMED = ("je.rescaled_bits.", "je.rounded_bits.", "je.line_of_bits.", "je.bits_of_line.", OF_ITS_KIND)


def only_decides(value: Value, users: Uses) -> bool:
    """Whether nothing of an integer comes to a number, to memory or to a function."""
    found = Reached([value])
    for item in found:
        for user, _ in users.get(item, ()):
            if not decides(user):
                if not computes(user):
                    return False
                found.add([user])
    return True


def only_moves(value: Value, users: Uses) -> bool:
    """Whether an integer is copied, or taken for a number, and decides, as it is."""
    found = Reached([value])
    for item in found:
        for user, index in users.get(item, ()):
            if isinstance(user, I.Phi | I.Freeze) or (isinstance(user, I.Select) and index > 0):
                found.add([user])
            elif not decides(user) and not keeps(user):
                return False
    return True


def keeps(user: I.Instruction) -> bool:
    """Uses that are right as long as the bits are a number's own: a copy into memory, and the way back."""
    return isinstance(user, I.Store) or (user.opcode == "bitcast" and T.is_float(user.type))


def decides(user: I.Instruction) -> bool:
    """Less, equal or more, also as one number (Rust's `total_cmp` of two numbers, and C++'s `<=>`), where control goes
    and what is accessed."""
    return isinstance(user, _DECIDES) or callee_name(user).startswith(("llvm.scmp.", "llvm.ucmp."))


def takes_bits(user: I.Instruction) -> bool:
    """Whether it makes a number of bits of which it is known what they have to do with its first argument, a number; or
    tells of its argument what it is, so that it stands for itself."""
    return callee_name(user).startswith(_NAMED)


def computes(user: I.Instruction) -> bool:
    """Another integer, and nothing else."""
    if isinstance(user, I.AtomicRMW | I.CmpXchg):
        return False
    if isinstance(user, I.CallBase) and not is_memory_free(user) and call_effect(user) is not Effect.PURE_INT:
        return False
    return T.is_int(user.type)
