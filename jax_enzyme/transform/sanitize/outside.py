"""The whole way: a kernel with checks, and derivatives that run it first.

    before   define i64 @je.primal(ptr %x, ptr %y)        after   define i64 @je.sanitized(ptr %x, ptr %y) {
                                                                    call void @je_checked_begin(i64 <limit>, i1 ...)
                                                                    call void @je_checked_fill(ptr %y, i64 32)
                                                                    %s = call i64 @je.primal(ptr %x, ptr %y)
                                                                    (if it is 0:)
                                                                    %t = call i64 @je_checked_written(ptr %y, ...)
                                                                    call void @je_checked_end()
                                                                    ret i64 ...

A derivative is not checked itself: its accesses are those of the kernel, and of its shadows. It calls the kernel with
checks before anything else, on copies of what that writes, and fails as it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.analysis.tbaa import let_numbers_meet
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import linking
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES, ArrayFunction, Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone, clone_without_debug
from jax_enzyme.ir.inlining import mark_for_inlining, recursive_functions, without_attributes
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.signature import RETURN
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.failure_sites import FIRST_MESSAGE, append_messages, messages
from jax_enzyme.transform.failures import lower_failures
from jax_enzyme.transform.heap_locals import move_locals_of
from jax_enzyme.transform.insertion import Check, insert_checks
from jax_enzyme.transform.output import is_repeatable
from jax_enzyme.transform.private_globals import privatise
from jax_enzyme.transform.sanitize.allocations import allocation_checks
from jax_enzyme.transform.sanitize.alone import is_alone
from jax_enzyme.transform.sanitize.arithmetic import arithmetic_checks, constant_checks, say_sums_plainly
from jax_enzyme.transform.sanitize.bounds import BoundsOfFunction, own_memory
from jax_enzyme.transform.sanitize.certain import drop_certain_checks
from jax_enzyme.transform.sanitize.endings import ending_checks
from jax_enzyme.transform.sanitize.lifetimes import check_lifetimes
from jax_enzyme.transform.sanitize.lookup import scope_of_records
from jax_enzyme.transform.sanitize.members import take_members_apart
from jax_enzyme.transform.sanitize.names import BEHIND, CHECKED
from jax_enzyme.transform.sanitize.narrow import is_checked
from jax_enzyme.transform.sanitize.promises import promise_checks
from jax_enzyme.transform.sanitize.registers import reveal, start_unwritten, unhide
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import holds_pattern, is_lifetime
from jax_enzyme.transform.sanitize.written import Written
from jax_enzyme.transform.stand_ins import stand_in

Checks = dict[I.Instruction, list[Check]]


def sanitized(function: ArrayFunction, milliseconds: int) -> ArrayFunction:
    """A kernel as `bind` and `prepare_calls` leave it, with checks, in a module of its own. `milliseconds` is what it
    may take, 0 for as long as it wants."""
    module = _inlined(lower_failures(function).module, function.symbol)
    _forget_unreached(module, function.symbol)
    let_numbers_meet(module)
    module = privatise(replace(function, module=module)).module
    layout, runtime = DataLayout(module), Runtime(module)
    for target in _users(module, function.symbol):
        insert_checks(target, constant_checks(target, runtime), {}, Declarations(module))
        take_members_apart(target)
        start_unwritten(target, runtime, layout)
    module = run(module, ["sroa"])
    layout, runtime = DataLayout(module), Runtime(module)
    own = _users(module, function.symbol)
    for target in own:
        check_lifetimes(target, runtime)
    # Variables whose addresses only others held that have become registers follow them.
    while any([reveal(target, runtime, layout) for target in own]):
        module = run(module, ["sroa"])
        own, runtime = _users(module, function.symbol), Runtime(module)
        for target in own:
            check_lifetimes(target, runtime)
    for target in own:
        check_lifetimes(target, runtime, by_address=True)
        drop_certain_checks(target)
    module = run(module, ["loop-simplify", "lcssa"], [target.name for target in own])
    found = _check(module, function)
    flat = lower_failures(replace(function, module=module))
    module = flat.module
    move_locals_of(module, _users(module, function.symbol))
    module.functions[CHECKED] = _call(module, flat, milliseconds, found)
    module.functions[function.symbol].prefix = ("internal",)
    mark_for_inlining(module, [CHECKED])  # run-time libraries know what they are called with, as without checks
    return ArrayFunction(module, CHECKED, function.buffers)


def with_checked_promises(function: ArrayFunction) -> ArrayFunction:
    """A kernel as `bind` leaves it, with the checks of `promises` and `allocations`, in a module of its own."""
    module = clone(function.module)
    runtime = Runtime(module)
    for target in _users(module, function.symbol):
        checks = promise_checks(target, runtime)
        _add(checks, allocation_checks(target, runtime))
        insert_checks(target, checks, {}, Declarations(module))
    return replace(function, module=module)


def _inlined(module: Module, symbol: str) -> Module:
    """The module with the user's functions inlined. Of run-time libraries, which are long and have been tested, only
    what they allocate is of interest."""
    copy = clone(module)
    mark_for_inlining(copy, [symbol])
    own = _users(copy, symbol)
    for target in copy.functions.values():
        if not target.is_declaration and target not in own:
            target.attributes = without_attributes(copy, target.attributes, frozenset(("alwaysinline",)))
    return run(copy, ["always-inline", "globaldce"])


def _forget_unreached(module: Module, symbol: str) -> None:
    """Functions that no call gets to trap, in place. (What sorts has its comparison inlined, and is handed its address
    all the same.) Checks in them would fail into nothing."""
    entered = reachable_functions(module.functions[symbol])
    for target in list(module.functions.values()):
        if not target.is_declaration and target not in entered:
            stand_in(module, target, target, entered=False)


def _users(module: Module, symbol: str) -> list[Function]:
    """The functions of the user's own source: those with debug information, where there is any, and kernels that it
    launches, which have lost theirs. What has been inlined into a function has brought its own."""
    defined = [f for f in module.functions.values() if not f.is_declaration]
    traced = [f for f in defined if _is_traced(f)]
    own = [f for f in defined if f in traced or f.name == symbol or f.name.startswith(marks.LAUNCHED)]
    return own if traced else defined


def _is_traced(function: Function) -> bool:
    return any(kind == "dbg" for i in (function, *function.instructions()) for kind, _ in i.metadata)


@dataclass(frozen=True)
class _Found:
    """`exposed`: something is written of which it is not known to what object it belongs: that may be an input.
    `notes`: what is wrong in some loops is noted, and told behind them. `compares`: runs of the kernel tell whether
    numbers of 8 and 16 bits were written. `alone`: see `alone`."""

    exposed: bool
    notes: bool
    compares: bool
    alone: bool


def _check(module: Module, function: ArrayFunction) -> _Found:
    """Adds all checks but those of `scalars`, in place."""
    layout, runtime, declarations = DataLayout(module), Runtime(module), Declarations(module)
    root = module.functions[function.symbol]
    buffers = dict(zip(root.arguments, function.buffers, strict=True))
    recursive, records = recursive_functions(module), scope_of_records(module)
    found: list[tuple[Function, Checks, BoundsOfFunction]] = []
    own = _users(module, function.symbol)
    for target in [f for f in module.functions.values() if not f.is_declaration]:  # tables of C++ lead to some
        behind = own_memory(target, runtime)
        if target not in own:
            insert_checks(target, {}, behind, declarations)
            continue
        given = buffers if target is root else {}
        written = Written(target, layout, given)
        unhide(target, written.fills, runtime, layout)
        _forget_promises(target, layout)
        say_sums_plainly(target)
        bounds = BoundsOfFunction(target, runtime, layout, given, records, written.reads)
        found.append((target, behind, bounds))
    asks = any(bounds.asks for _, _, bounds in found)
    variables = [v for v in module.globals.values() if v.initializer is not None and not v.name.startswith("je.")]
    for target, behind, bounds in found:
        before: Checks = {}
        for instruction in target.instructions():
            _add(before, {instruction: arithmetic_checks(instruction, runtime)})
        _add(before, bounds.before)
        _add(behind, bounds.behind)
        _add(before, ending_checks(target, runtime, recursive=target in recursive))
        bounds.insert(variables, all_objects=asks)
        insert_checks(target, before, behind, declarations)
    all_ = [bounds for _, _, bounds in found]
    exposed, notes = any(bounds.writes_somewhere for bounds in all_), any(bounds.notes for bounds in all_)
    return _Found(exposed, notes, is_checked(module) and is_repeatable(module), is_alone(module))


def _add(checks: Checks, more: Checks) -> None:
    for instruction, own in more.items():
        if own:
            checks.setdefault(instruction, []).extend(own)


def _forget_promises(function: Function, layout: DataLayout) -> None:
    """What the language promises about addresses, and LLVM may take for granted, is what is to be checked. Without
    lifetimes no two variables lie at one address, at which only one of them could be found. What pointers go on by is
    said in bytes, as `analysis.counters` knows it."""
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if not is_lifetime(i)]
    for instruction in function.instructions():
        if isinstance(instruction, I.GetElementPtr):
            instruction.flags = ()
            constant, steps = layout.steps(instruction.source_type, instruction.operands[1:])
            if not steps and isinstance(instruction.operands[0], I.Phi):
                instruction.source_type = T.I8
                instruction.operands[1:] = [const_int(T.I64, constant)]
        elif isinstance(instruction, I.Load):
            instruction.metadata = [(k, n) for k, n in instruction.metadata if k not in ("nonnull", "range", "noundef")]


def _call(module: Module, function: ArrayFunction, milliseconds: int, found: _Found) -> Function:
    """What surrounds a call. One that fails after something was noted in a loop runs again, from the same contents, to
    tell of the first access that was wrong; one that has read what only a comparison of runs can tell of, to tell."""
    runtime, primal, declarations = Runtime(module), module.functions[function.symbol], Declarations(module)
    arguments = [Argument(T.PTR, a.attributes, i, name=a.name) for i, a in enumerate(primal.arguments)]
    buffers = list(zip(arguments, function.buffers, strict=True))
    repeats = found.notes or found.compares
    changed = [(argument, buffer) for argument, buffer in buffers if buffer.io == "inout" and repeats]
    names = ("start", "run", "failed", "again", "look", "done")
    start, run_, failed, again, look, done = (BasicBlock(name=n) for n in names)
    at, nothing = Builder(start), const_int(T.I64, 0)
    runtime.call(at, "begin", const_int(T.I64, milliseconds), const_int(T.I1, int(found.alone)))
    _, kept = copies_of(at, module, changed, ("inout",), ("inout",))
    at.br(run_)
    at = Builder(run_)
    before = at.phi(T.I64, [(nothing, start)])
    for argument, buffer in buffers:
        if buffer.io in ("out", "scratch"):
            runtime.call(at, "fill", argument, const_int(T.I64, buffer.nbytes))
    copied = ("in",) if found.exposed else ()
    given, copies = copies_of(at, module, buffers, copied, copied)
    status = at.call(primal, given)
    free_all(at, module, copies)
    at.cond_br(at.icmp("eq", status, nothing), look, failed)
    at = Builder(failed)
    at.cond_br(runtime.call(at, "again", status) if repeats else const_int(T.I1, 0), again, done)
    at = Builder(again)
    so_far = at.phi(T.I64, [(status, failed)])
    for (argument, buffer), copy in zip(changed, kept, strict=True):
        declarations.memory(at, "memcpy", argument, copy, const_int(T.I64, buffer.nbytes))
    before.add(so_far, again)
    at.br(run_)
    at = Builder(look)
    written: Value = before
    place = runtime.place(primal)
    nowhere = runtime.failure("returns what nothing wrote", primal.entry.instructions[0], primal)
    for argument, buffer in buffers:
        if buffer.io == "out":
            size, unit = const_int(T.I64, buffer.nbytes), const_int(T.I64, ITEM_BYTES[buffer.dtype])
            if buffer.name == RETURN and buffer.dtype == "f64":  # as where it is read: an empty optional has a byte
                missing = at.select(holds_pattern(at, at.load(T.DOUBLE, argument)), nowhere, nothing)
            else:
                missing = runtime.call(at, "written", argument, size, unit, runtime.text(buffer.name), place)
            if buffer.name == RETURN:  # which has no name in the source
                missing = at.select(at.icmp("ne", missing, nothing), nowhere, nothing)
            written = at.select(at.icmp("ne", written, nothing), written, missing)
    if found.compares:
        right = at.icmp("eq", written, nothing)
        at.cond_br(at.binary("and", right, runtime.call(at, "compares")), again, done)
        so_far.add(nothing, look)
    else:
        at.br(done)
    at = Builder(done)
    result = at.phi(T.I64, [(status, failed), (written, look)])
    free_all(at, module, kept)
    runtime.call(at, "end")
    at.ret(result)
    blocks = [start, run_, failed, again, look, done]
    return Function(T.PTR, primal.function_type, arguments, blocks, attributes=("uwtable",), name=CHECKED)


def copies_of(
    at: Builder,
    module: Module,
    buffers: Sequence[tuple[Argument, Buffer]],
    copied: Sequence[str],
    with_contents: Sequence[str],
) -> tuple[list[Value], list[Value]]:
    """What to pass for buffers where those of some `io` are copied, with or without what is in them; the copies."""
    declarations = Declarations(module)
    given: list[Value] = []
    copies: list[Value] = []
    for argument, buffer in buffers:
        if buffer.io not in copied:
            given.append(argument)
            continue
        copies.append(declarations.memory(at, "malloc", const_int(T.I64, max(buffer.nbytes, 1))))
        given.append(copies[-1])
        if buffer.io in with_contents and buffer.nbytes:
            declarations.memory(at, "memcpy", copies[-1], argument, const_int(T.I64, buffer.nbytes))
    return given, copies


def free_all(at: Builder, module: Module, copies: Sequence[Value]) -> None:
    for copy in copies:
        Declarations(module).memory(at, "free", copy)


# -- derivatives


def with_checks(derivative: ArrayFunction, checked: ArrayFunction) -> ArrayFunction:
    """A derivative whose buffers begin with those of the kernel, behind the kernel with checks."""
    own, of_kernel = messages(derivative.module), messages(checked.module)
    alone = clone_without_debug(checked.module)
    alone.named_metadata = {}  # with what is known of loops, which goes with debug information otherwise
    library = linking.linkable(alone)
    module = parse(to_text(derivative.module))
    kind = T.FunctionType(T.I64, tuple(T.PTR for _ in checked.buffers))
    kernel = Declarations(module).function(checked.symbol, kind)
    inner = module.functions[derivative.symbol]
    module.functions[BEHIND] = _behind(module, inner, kernel, derivative.buffers[: len(checked.buffers)], len(own))
    module = parse(linking.link(to_text(module), [library]))
    append_messages(module, own, of_kernel)
    return ArrayFunction(module, BEHIND, derivative.buffers)


def _behind(module: Module, inner: Function, kernel: Function, buffers: tuple[Buffer, ...], shift: int) -> Function:
    arguments = [Argument(T.PTR, a.attributes, i, name=a.name) for i, a in enumerate(inner.arguments)]
    start, failed, going_on = (BasicBlock(name=n) for n in ("start", "failed", "going.on"))
    at = Builder(start)
    own = list(zip(arguments, buffers, strict=False))
    given, copies = copies_of(at, module, own, ("inout", "out", "scratch"), ("inout",))
    status = at.call(kernel, given)
    free_all(at, module, copies)
    at.cond_br(at.icmp("eq", status, const_int(T.I64, 0)), going_on, failed)
    at = Builder(failed)
    # Texts of the kernel come behind those of the derivative.
    number = at.binary("and", status, const_int(T.I64, 0xFFFFFFFF))
    high = at.binary("lshr", status, const_int(T.I64, 32))
    has_text = at.binary(
        "and",
        at.icmp("uge", number, const_int(T.I64, FIRST_MESSAGE)),
        at.binary("or", at.icmp("eq", high, const_int(T.I64, 3)), at.icmp("eq", high, const_int(T.I64, 4))),
    )
    at.ret(at.select(has_text, at.binary("add", status, const_int(T.I64, shift)), status))
    at = Builder(going_on)
    at.ret(at.call(inner, list[Value](arguments)))
    return Function(
        T.PTR, inner.function_type, arguments, [start, failed, going_on], attributes=("uwtable",), name=BEHIND
    )
