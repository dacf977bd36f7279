"""Functions of the device whose addresses a host function reads from the device's variables, and passes to kernels.

    before    @pick = internal constant ptr undef                     on the device    @pick = constant ptr @square
    after     @pick = internal constant ptr @je.device.square         and a function of the host, as the CPU runs it

A kernel that is given such an address calls what it points to, so that this may not depend on the thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import linking
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.clone import Cloner
from jax_enzyme.ir.debug import debug_node, function_location
from jax_enzyme.ir.module import Function, GlobalVariable, Module, Uses, callee_name, declare, uses
from jax_enzyme.ir.passes import inline_everything
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.signature.launch import MAX_BLOCK, MAX_GRID, Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.blocks import Block
from jax_enzyme.transform.cuda.host import to_host
from jax_enzyme.transform.cuda.spaces import SHARED, drop_spaces
from jax_enzyme.transform.private_globals import globals_in

_PREFIX = "je.device."
_ANY = Shape(MAX_GRID, MAX_BLOCK, 0)
_OPEN = (0, 1, 2)
_COPIES = ("llvm.memcpy.", "llvm.memmove.")
CHOOSE_FUNCTION = "choose the function by a `switch`, or by an argument of a template"


def hand_functions(host: Module, device: Module) -> tuple[Module, list[str]]:
    """The host with what it reads of the device's variables that hold functions, and the names of these variables.
    They leave the device, where kernels do not read them themselves. LoweringError for functions that only a thread of
    the device can run."""
    handed = [v for v in device.globals.values() if _is_handed(host, device, v)]
    functions = {f.name: f for v in handed for f in functions_in(v)}
    if not functions:
        return host, []
    library = _as_host(device, functions)
    own = {name: library.functions[_PREFIX + name] for name in functions}
    cloner = Cloner({functions[name]: declare(host, made.name, made.function_type) for name, made in own.items()})
    for variable in handed:
        shadow = host.globals[variable.name]
        assert variable.initializer is not None
        shadow.initializer = cloner.constant(variable.initializer)
        shadow.is_constant, shadow.prefix = False, ("internal",)
        del device.globals[variable.name]
    return parse(linking.link(to_text(host), [linking.linkable(library, debug=True)])), [v.name for v in handed]


def functions_in(variable: GlobalVariable) -> list[Function]:
    """The functions whose addresses a variable starts with."""
    if variable.initializer is None:
        return []
    return [v for v in reached([variable.initializer], V.parts_of) if isinstance(v, Function)]


def is_only_read(module: Module, variable: GlobalVariable) -> bool:
    """Whether all that is done with a variable is to load and to copy from it, as far as can be seen."""
    reads = (I.GetElementPtr, I.Cast, I.Load)

    def copies(call: I.Instruction, source: V.Value) -> bool:
        if not callee_name(call).startswith(_COPIES):
            return False
        return [n for n, operand in enumerate(call.operands) if operand is source] == [1]

    for function in module.functions.values():
        table = uses(function)

        def onward(value: V.Value, table: Uses = table) -> Iterator[V.Value]:
            if not isinstance(value, I.Load):
                yield from (user for user, _ in table.get(value, ()) if not copies(user, value))

        named = (i for v, us in table.items() if variable in globals_in(v) for i, _ in us if not copies(i, v))
        if not all(isinstance(i, reads) for i in reached(named, onward)):
            return False
    others = (v.initializer for v in module.globals.values() if not v.name.startswith("llvm."))
    return not any(variable in globals_in(value) for value in others if value is not None)


def _is_handed(host: Module, device: Module, variable: GlobalVariable) -> bool:
    """Whether the host has a name for a variable that holds functions, which no kernel reads; addresses are those of
    the host then, and may not be compared with those of the device."""
    functions = functions_in(variable)
    if not functions or variable.name not in host.globals or variable.initializer is None:
        return False
    if any(isinstance(part, GlobalVariable) for part in reached([variable.initializer], V.parts_of)):
        return False
    code = [i for f in device.functions.values() for i in f.instructions()]
    if any(variable in globals_in(o) for i in code for o in i.operands):
        return False
    compared = any(i.opcode == "icmp" and _are_addresses(i.operands) for i in code)
    return not (compared and any(o in functions and o is not _callee(i) for i in code for o in i.operands))


def _are_addresses(operands: Collection[V.Value]) -> bool:
    return all(isinstance(o.type, T.PointerType) and not isinstance(o, V.ConstantNull) for o in operands)


def _callee(instruction: I.Instruction) -> V.Value | None:
    return instruction.callee if isinstance(instruction, I.CallBase) else None


def _as_host(device: Module, functions: Collection[str]) -> Module:
    """The functions as the CPU runs them, under names of their own."""
    library = parse(linking.reachable(to_text(device), functions))
    for name, variable in library.globals.items():
        if SHARED in variable.prefix:
            raise LoweringError(
                f"a function whose address the host reads has shared memory, `{name}`", remedy=CHOOSE_FUNCTION
            )
    drop_spaces(library)
    to_host(library, Block(library, _ANY, _OPEN), open_grid=True)
    library = inline_everything(library, list(functions), ["sroa", "instcombine", "simplifycfg"])
    for function in library.functions.values():
        if any(_is_of_thread(callee_name(call)) for call in function.instructions()):
            described = debug_node(library, function.metadata)
            called = function.name if described is None else described.string("name") or function.name
            raise LoweringError(
                f"the host reads the address of `{called}`, which depends on its thread",
                function_location(library, function),
                CHOOSE_FUNCTION,
            )
    for name in functions:
        function = library.functions[name]
        function.name = _PREFIX + name
        function.attributes = tuple(w for w in function.attributes if not w.startswith("comdat"))
    library.functions = {f.name: f for f in library.functions.values()}
    return library


def _is_of_thread(name: str) -> bool:
    return name in marks.INDICES or name.startswith(("je.meet.", marks.SHUFFLE, marks.SHARED_ADDRESS))
