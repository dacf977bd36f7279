"""What the address of a function leads to once calls enter a twin of it, which takes the place for a status as well.

    before    define double @f(double %x) {          after    define double @f(double %x) {
                ... may fail ...                                %failure = alloca { i64, ptr }
                                                                store i64 0, ptr %failure
                                                                %y = call double @f.failing(ptr %failure, double %x)
                                                                %status = load i64, ptr %failure
                                                                %ok = icmp eq i64 %status, 0
                                                                br i1 %ok, label %done, label %failed
                                                              done:
                                                                ret double %y
                                                              failed:
                                                                call void @llvm.trap()
                                                                unreachable

Where no call is left that may enter it, its address is only compared, and the trap alone will do. Something has to be
there: functions without any code would share one address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import (
    OPEN,
    MemoryObject,
    is_defined_call,
    may_call_back,
    named_functions,
    reachable_functions,
)
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.keywords import CONVENTIONS
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name, callee_of, declared_callee, empty
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, BlockAddress, InlineAsm, Value, parts_of
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import calls_nothing_back
from jax_enzyme.transform.failing import address_taken, new_place

_OWN = frozenset({"internal", "private"})
_PASSING = ("sret", "byval", "byref", "inreg", "zeroext", "signext", "nest")


def stand_in(module: Module, source: Function, twin: Function, *, entered: bool) -> None:
    """Gives `source` such a body, in place. `entered`: calls through pointers may be left."""
    entry = BasicBlock(name="entry")
    source.blocks, source.personality, source.attributes = [entry], None, twin.attributes
    enters = entered and not source.function_type.variadic
    _trap(module, _enter(Builder(entry), source, twin) if enters else entry)


def forget_unentered(module: Module, root: str) -> bool:
    """Changes the module: functions that no run of `root` enters, nor one of what the linker is told of (constructors,
    which may leave addresses for it), have the trap alone. A class's table holds all of its functions, the bindings of
    a Fortran type all of its procedures: once calls through them are direct, most of these are nobody's, and longer
    than all that is called. Whether there were any."""
    if all(f.is_declaration or f.name == root for f in module.functions.values()):
        return False
    entered = reachable_functions(module.functions[root], *_told(module))
    if any(OPEN in a.attributes for a in entered[0].arguments):
        return False  # the caller may find them in its memory
    if any(isinstance(i, I.CallBase) and may_call_back(i) for f in entered for i in f.instructions()):
        return False
    gone = _without(module, entered)
    forget(gone, module)
    return bool(gone)


def unentered(points_to: PointsTo) -> list[Function]:
    """Those functions, where calls through pointers, or of code that is not there, are left: such a call enters what
    its pointer may lead to, and code outside of the module what it is handed, or finds where it looks."""
    module, reached = points_to.module, set(points_to.functions)
    if any(OPEN in a.attributes for a in points_to.root.arguments):
        return []
    beside = (f for f in module.functions.values() if not f.is_declaration and f not in reached)
    found = {points_to.root, *points_to.called_from_outside, *reachable_functions(*_told(module), *beside)}
    for held in (held for item, held in points_to.contents.items() if not _is_private(item)):
        found.update(_functions(held))
    pending = list(found)
    while pending:
        function = pending.pop()
        named = [function.personality, *function.returned()]
        for call in (i for i in function.instructions() if isinstance(i, I.CallBase)):
            named += [call.callee, *([] if is_defined_call(call) else call.arguments)]
        for value in filter(None, named):
            new = {*_functions(points_to.of(value)), *named_functions(value)} - found
            found |= new
            pending += new
    return _without(module, found)


def _functions(objects: Iterable[MemoryObject]) -> Iterator[Function]:
    return (o.site for o in objects if isinstance(o.site, Function))


def _is_private(item: MemoryObject) -> bool:
    """Whether code outside of the module sees an object only where it is handed that."""
    if isinstance(item.site, GlobalVariable):
        return item.is_constant or not _OWN.isdisjoint(item.site.prefix)
    return item.kind in ("stack", "heap", "tape", "stream", "function")


def _told(module: Module) -> list[Function]:
    """The functions with code of which the linker is told."""
    lists = (v.initializer for v in module.globals.values() if v.name.startswith("llvm."))
    told = (f for held in lists if held is not None for f in named_functions(held))
    return list(dict.fromkeys(f for f in told if not f.is_declaration))


def _without(module: Module, entered: Iterable[Function]) -> list[Function]:
    """The functions with code that are not among those that are entered, and whose addresses alone are wanted."""
    named = address_taken(module)
    left = {f for f in module.functions.values() if f in named or not _OWN.isdisjoint(f.prefix)}.difference(entered)
    left -= {a.function for a in _block_addresses(module)}
    return [f for f in module.functions.values() if f in left and not f.is_declaration and not _is_trap(f)]


def forget(functions: Iterable[Value], module: Module) -> None:
    """Leaves functions of a module the trap alone, in place."""
    for function in functions:
        assert isinstance(function, Function)
        empty(function)
        function.blocks, function.personality, function.attributes = [BasicBlock(name="entry")], None, ()
        function.trailing_records = []
        _trap(module, function.entry)


def _block_addresses(module: Module) -> Iterator[BlockAddress]:
    """Those in tables: the functions with these blocks keep them."""
    held = (v.initializer for v in module.globals.values() if v.initializer is not None)
    return (part for part in reached(held, parts_of) if isinstance(part, BlockAddress))


def _is_trap(function: Function) -> bool:
    return callee_name(function.entry.instructions[0]) == "llvm.trap"


def _trap(module: Module, block: BasicBlock) -> None:
    at = Builder(block)
    Declarations(module).invoke(at, "llvm.trap", T.VOID)
    at.unreachable()


def may_be_entered(functions: Iterable[Function]) -> bool:
    """Whether these functions call through pointers, or hand functions to code that is not known, or memory where it
    may find them: a table, a record of what is to be called."""
    return any(
        isinstance(i, I.CallBase) and _through_pointer(i) for function in functions for i in function.instructions()
    )


def _through_pointer(call: I.CallBase) -> bool:
    if callee_of(call) is None:
        return not isinstance(call.callee, InlineAsm)
    if declared_callee(call) is None:
        return False
    handed = any(True for a in call.arguments for _ in named_functions(a))
    return handed or (may_call_back(call) and not calls_nothing_back(call.callee.name))


def _enter(at: Builder, source: Function, twin: Function) -> BasicBlock:
    """The call of the twin and the return of its result; the block where it has failed."""
    status = new_place(at)
    result = at.call(twin, [status, *source.arguments])
    result.calling_convention = next((w for w in twin.prefix if w in CONVENTIONS), "")
    result.return_attributes = tuple(w for w in twin.return_attributes if w.startswith(_PASSING))
    result.parameter_attributes = [
        tuple(w for w in argument.attributes if w.startswith(_PASSING)) for argument in twin.arguments
    ]
    done, failed = BasicBlock(name="done"), BasicBlock(name="failed")
    at.cond_br(at.icmp("eq", at.load(T.I64, status, 8), const_int(T.I64, 0)), done, failed)
    Builder(done).ret(None if source.function_type.result == T.VOID else result)
    source.blocks += [done, failed]
    return failed
