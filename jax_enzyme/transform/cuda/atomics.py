"""What atomic operations do to memory, one thread after the other."""

from __future__ import annotations

from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder, const_int, zero


def combined(at: Builder, operation: str, old: V.Value, value: V.Value) -> V.Value:
    """What an atomic operation leaves in memory."""
    match operation:
        case "xchg":
            return value
        case "add" | "sub" | "and" | "or" | "xor" | "fadd" | "fsub":
            return at.binary(operation, old, value)
        case "nand":
            return at.binary("xor", at.binary("and", old, value), const_int(value.type, -1))
        case "max" | "min" | "umax" | "umin":
            predicate = {"max": "sgt", "min": "slt", "umax": "ugt", "umin": "ult"}[operation]
            return at.select(at.icmp(predicate, old, value), old, value)
        case "fmax" | "fmin":
            return at.select(at.fcmp("ogt" if operation == "fmax" else "olt", old, value), old, value)
        case "uinc_wrap":
            one = at.binary("add", old, const_int(value.type, 1))
            return at.select(at.icmp("uge", old, value), zero(value.type), one)
        case "udec_wrap":
            less = at.binary("sub", old, const_int(value.type, 1))
            wraps = at.binary("or", at.icmp("eq", old, zero(value.type)), at.icmp("ugt", old, value))
            return at.select(wraps, value, less)
        case _:
            raise LoweringError(f"the atomic operation `{operation}` has no meaning on the CPU")
