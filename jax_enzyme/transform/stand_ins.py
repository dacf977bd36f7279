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

from jax_enzyme.analysis.objects import OPEN, may_call_back, named_functions, reachable_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.keywords import CONVENTIONS
from jax_enzyme.ir.module import Function, Module, callee_name, callee_of, declared_callee, empty
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, BlockAddress, InlineAsm, parts_of
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.failing import address_taken

_OWN = frozenset({"internal", "private"})
_PASSING = ("sret", "byval", "byref", "inreg", "zeroext", "signext", "nest")


def stand_in(module: Module, source: Function, twin: Function, place: T.StructType, *, entered: bool) -> None:
    """Gives `source` such a body, in place. `entered`: calls through pointers may be left."""
    entry = BasicBlock(name="entry")
    source.blocks, source.personality, source.attributes = [entry], None, twin.attributes
    enters = entered and not source.function_type.variadic
    _trap(module, _enter(Builder(entry), source, twin, place) if enters else entry)


def forget_unentered(module: Module, root: str) -> bool:
    """Changes the module: functions that no run of `root` enters, nor one of what the linker is told of (constructors,
    which may leave addresses for it), have the trap alone. A class's table holds all of its functions, the bindings of
    a Fortran type all of its procedures: once calls through them are direct, most of these are nobody's, and longer
    than all that is called. Whether there were any."""
    if all(f.is_declaration or f.name == root for f in module.functions.values()):
        return False
    lists = (v.initializer for v in module.globals.values() if v.name.startswith("llvm."))
    told = dict.fromkeys(f for held in lists if held is not None for f in named_functions(held) if not f.is_declaration)
    entered = reachable_functions(module.functions[root], *told)
    if any(OPEN in a.attributes for a in entered[0].arguments):
        return False  # the caller may find them in its memory
    if any(isinstance(i, I.CallBase) and may_call_back(i) for f in entered for i in f.instructions()):
        return False
    named = address_taken(module)
    left = {f for f in module.functions.values() if f in named or not _OWN.isdisjoint(f.prefix)}.difference(entered)
    left -= {a.function for a in _block_addresses(module)}
    gone = [f for f in module.functions.values() if f in left and not f.is_declaration and not _is_trap(f)]
    for function in gone:
        empty(function)
        function.blocks, function.personality, function.attributes = [BasicBlock(name="entry")], None, ()
        function.trailing_records = []
        _trap(module, function.entry)
    return bool(gone)


def _block_addresses(module: Module) -> Iterator[BlockAddress]:
    """Those in tables: the functions with these blocks keep them."""
    held = (v.initializer for v in module.globals.values() if v.initializer is not None)
    return (part for part in reached(held, parts_of) if isinstance(part, BlockAddress))


def _is_trap(function: Function) -> bool:
    return callee_name(function.entry.instructions[0]) == "llvm.trap"


def _trap(module: Module, block: BasicBlock) -> None:
    at = Builder(block)
    at.call(Declarations(module).function("llvm.trap", T.FunctionType(T.VOID, ())), [])
    at.unreachable()


def may_be_entered(functions: Iterable[Function]) -> bool:
    """Whether these functions call through pointers, or hand functions to code that is not known."""
    return any(
        isinstance(i, I.CallBase) and _through_pointer(i) for function in functions for i in function.instructions()
    )


def _through_pointer(call: I.CallBase) -> bool:
    if callee_of(call) is None:
        return not isinstance(call.callee, InlineAsm)
    return declared_callee(call) is not None and any(True for a in call.arguments for _ in named_functions(a))


def _enter(at: Builder, source: Function, twin: Function, place: T.StructType) -> BasicBlock:
    """The call of the twin and the return of its result; the block where it has failed."""
    status = at.alloca(place, align=8)
    status.name = "failure"
    at.store(const_int(T.I64, 0), status, 8)
    result = at.call(twin, [status, *source.arguments])
    assert isinstance(result, I.Call)
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
