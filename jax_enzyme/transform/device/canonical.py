"""The form of a device function that the engine differentiates: flat, optimised, regular.

As for the CPU (`codegen.canonical`): everything is inlined, LLVM's -O2 without vectorising and unrolling, loops with
preheader, single latch and exits of their own, two-way branches, one return. Two things are the device's own. Loops of
fixed length that run over local arrays, or with shuffles in them, are unrolled: a thread's memory is slow, and it is
known who reads a lane whose number is a constant; loops that are long for LLVM (8 x 8 sums of a thread) where arrays
become registers by that; and levels of trees (`transform.cuda.levels`). And where threads meet, what they write is not
`noalias`: LLVM takes memory behind such a parameter for untouched by any call, a barrier included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.flow import is_shuffle
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Function, Module, callee_name, declared_name
from jax_enzyme.ir.pass_managers import Setting
from jax_enzyme.ir.passes import run
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.transform.atomic_loops import lower_atomic_loops
from jax_enzyme.transform.cuda.halves import MASKED, shuffle_numbers
from jax_enzyme.transform.cuda.levels import ask_for_levels
from jax_enzyme.transform.device.flat import flatten
from jax_enzyme.transform.device.registers import LANE, REGISTER, WARP_ADD, declare_registers, lower_registers
from jax_enzyme.transform.device.taking_turns import name_offsets
from jax_enzyme.transform.invariant_loads import load_before_loops
from jax_enzyme.transform.joins import optimise_meetings
from jax_enzyme.transform.lower_calls import lower_calls
from jax_enzyme.transform.masked_memory import lower_masked_memory
from jax_enzyme.transform.poison import define_poison
from jax_enzyme.transform.reducible import make_reducible
from jax_enzyme.transform.retype import retype
from jax_enzyme.transform.scopes import drop_scopes
from jax_enzyme.transform.shown_attributes import show_attributes
from jax_enzyme.transform.struct_copies import split_struct_copies

REGULAR = ("lower-switch", "mergereturn", "loop-simplify", "lcssa", "globaldce")
_SPLIT_UP_TO = 16
_LONG_LOOPS = (Setting("unroll-threshold-default", "1000", usual="150"),)
_KERNEL_WORDS = ("ptx_kernel", "ptx_device")


def canonical(function: DeviceFunction) -> DeviceFunction:
    """The canonical form of a device function of one stage, in a flat module of its own (see `flat`)."""
    (symbol,) = function.symbols
    module = flatten(function.module)
    for defined in module.functions.values():
        defined.prefix = tuple(w for w in defined.prefix if w not in _KERNEL_WORDS)
    lower_registers(module, function.shape)
    mark_for_inlining(module, [symbol])
    keep_aliases_true(module.functions[symbol], module, tuple(b.io == "in" for b in function.buffers))
    result = ArrayFunction(_optimised(lower_calls(module)), symbol, function.buffers)
    for _ in range(2):
        simple = _simplified(result)
        if simple is result:
            break
        again = clone(simple.module)
        mark_for_inlining(again, [symbol])
        result = replace(result, module=_optimised(again))
    module = make_reducible(result.module)
    if module is not result.module:
        module = run(module, ["sroa", *REGULAR])
    module = clone(define_poison(lower_calls(retype(replace(result, module=module)).module)))
    drop_scopes(module)
    name_offsets(module)
    show_attributes(module)
    declare_registers(module)
    _check_inlined(module, symbol)
    return replace(function, module=load_before_loops(replace(result, module=module)).module)


def _optimised(module: Module) -> Module:
    rolled = module = optimised(module)
    if any([ask_for_levels(module, f, is_meeting) for f in module.functions.values() if f.blocks]):
        rolled = module = optimised(module)
    if _local_arrays(rolled) or any(map(_shuffles_in_loops, rolled.functions.values())):
        module = optimised(rolled, unroll=True)
        if left := _local_arrays(module):
            longer = optimised(rolled, unroll=True, settings=_LONG_LOOPS)
            module = longer if _local_arrays(longer) < left else module
    return run(module, REGULAR)


def optimised(module: Module, *, unroll: bool = False, settings: Sequence[Setting] = ()) -> Module:
    """What is marked inlined, and LLVM's -O2."""
    return optimise_meetings(module, is_meeting, _differs, unroll=unroll, settings=settings)


def _local_arrays(module: Module) -> int:
    return sum(isinstance(i, I.Alloca) for f in module.functions.values() for i in f.instructions())


def _shuffles_in_loops(function: Function) -> bool:
    cfg = Cfg(function) if function.blocks else None
    return cfg is not None and any(cfg.reaches(b, b) and any(map(is_shuffle, b.instructions)) for b in cfg.rpo)


def _simplified(function: ArrayFunction) -> ArrayFunction:
    function = _with_shuffled_numbers(split_struct_copies(function, _SPLIT_UP_TO))
    module = lower_atomic_loops(lower_masked_memory(function.module))
    return function if module is function.module else replace(function, module=module)


def _with_shuffled_numbers(function: ArrayFunction) -> ArrayFunction:
    """The array function with shuffles of numbers in place of those of their bits; itself where there are none."""
    if MASKED.words not in function.module.functions:
        return function
    module = clone(function.module)
    found = [shuffle_numbers(module, f, MASKED) for f in list(module.functions.values()) if f.blocks]
    return replace(function, module=module) if any(found) else function


def keep_aliases_true(function: Function, module: Module, unwritten: tuple[bool, ...]) -> None:
    """Takes `noalias` from the parameters that threads write, where threads meet."""
    # Lanes that add up numbers see no memory of each other.
    defined = [f for f in module.functions.values() if not f.name.startswith(WARP_ADD)]
    if not any(is_meeting(i) for f in defined for i in f.instructions()):
        return
    for argument, is_unwritten in zip(function.arguments, unwritten, strict=True):
        if not is_unwritten:
            argument.attributes = tuple(w for w in argument.attributes if w != "noalias")


def is_meeting(instruction: I.Instruction) -> bool:
    """A barrier, a vote, a shuffle or a fence: what other threads have written may be there afterwards."""
    return effect(declared_name(instruction)) in (Effect.BARRIER, Effect.VOTE, Effect.SHUFFLE, Effect.FENCE)


def _differs(instruction: I.Instruction) -> bool:
    """Whether this is not the same for all threads of a block."""
    name = callee_name(instruction)
    return name.startswith((LANE, f"{REGISTER}tid.")) or effect(name) is Effect.SHUFFLE


def _check_inlined(module: Module, symbol: str) -> None:
    """What could not be inlined must not depend on the thread: the engine reverses one function per kernel."""
    for function in module.functions.values():
        if function.name == symbol or function.is_declaration:
            continue
        if any(map(is_meeting, function.instructions())):
            raise DifferentiationError(
                f"`{function.name}` is recursive or called through a pointer, and has barriers in it",
                remedy="make it a function that can be inlined",
            )
