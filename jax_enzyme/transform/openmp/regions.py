"""Parallel regions and tasks as plain calls.

    before    call void (...) @__kmpc_fork_call(ptr @loc, i32 2, ptr @f.omp_outlined, ptr %x, ptr %n)
              %task = call ptr @__kmpc_omp_task_alloc(ptr @loc, i32 %id, i32 1, i64 48, i64 8, ptr @entry)
              call i32 @__kmpc_omp_task(ptr @loc, i32 %id, ptr %task)

    after     call void @f.omp_outlined(ptr %id, ptr %bound, ptr %x, ptr %n)       both ids are 0
              %task = alloca [56 x i8]                                             with the address of the last 8
              call i32 @entry(i32 0, ptr %task)

Where a module names a number of threads, or asks for its own, the call says which team it wants, until the whole
program is there (`teams`):

              call void (i32, ptr, ...) @je_team(i32 %size, ptr @f.omp_outlined, ptr %id, ptr %bound, ptr %x, ptr %n)

A task is run where it is created: a team of one may do so, and every dependence then holds by itself. A loop that
creates tasks has a mark, as a worksharing loop has. What
`__kmpc_taskloop` would divide is one task, with a mark on its loop (`sharing.mark_taskloop`). An `untied` task gives
itself back at each point where another thread may take it up; here it goes on. The layout of a task's head is that of
`kmp_task_t` (kmp.h of LLVM).
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import CompileError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.inlining import expanded_attributes, without_attributes
from jax_enzyme.ir.marks import Mark, mark, marks_of
from jax_enzyme.ir.module import Function, Module, callee_name, declare
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.openmp.calls import FORKS, TEAM, TEAM_SIZE, TEAM_TYPE, calls_of, replace_call
from jax_enzyme.transform.openmp.sharing import mark_taskloop
from jax_enzyme.transform.rewriting import local, replace_values

_TASKS = ("__kmpc_omp_task", "__kmpc_omp_task_with_deps", "__kmpc_taskloop", "__kmpc_taskloop_5")
_CREATED = ("__kmpc_omp_task_alloc", "__kmpc_omp_target_task_alloc")
_REGION = '"je-region"'
_INLINED = frozenset(("alwaysinline", "inlinehint", "noinline"))
_SHARED_AT, _PART_AT, _LAST_AT = 0, 16, 64
_ALIGN = 16


def forked(module: Module) -> dict[Function, None]:
    """The functions that are bodies of parallel regions."""
    found: dict[Function, None] = {}
    for function in module.functions.values():
        for _, call in calls_of(function, *FORKS):
            if isinstance(call.operands[2], Function):
                found[call.operands[2]] = None
    return found


def is_region(module: Module, function: Function) -> bool:
    """Whether a function is what a parallel region does."""
    return _REGION in expanded_attributes(module, function.attributes)


def call_regions(module: Module, *, teams: bool) -> None:
    """Makes calls of parallel regions, in place; with `teams`, of regions that may have one. What they do stays apart,
    also where a source is optimised by itself, until it is known what a whole program does outside of them."""
    for body in forked(module):
        others = without_attributes(module, body.attributes, _INLINED)
        body.attributes = (*others, "noinline", _REGION)
    for function in list(module.functions.values()):
        for block, call in calls_of(function, *FORKS):
            _call_region(module, function, block, call, teams)


def _call_region(module: Module, function: Function, block: BasicBlock, call: I.CallBase, teams: bool) -> None:
    body = call.operands[2]
    if not isinstance(body, Function):
        raise CompileError(
            "a parallel region's body is not known",
            location(module, call),
            "compile the source itself, rather than IR that was optimised before",
        )
    captured = call.arguments[3:]
    condition: Value | None = None
    if callee_name(call) == "__kmpc_fork_call_if":
        condition, *captured = captured
    at = Builder(BasicBlock())
    ids = [local(function, T.I32, 4), local(function, T.I32, 4)]
    for memory in ids:
        at.store(const_int(T.I32, 0), memory, 4)
    wanted = body.function_type.parameters
    if len(wanted) != 2 + len(captured):
        raise CompileError("a parallel region takes other values than it is given", location(module, call))
    if teams and callee_name(call) != "__kmpc_fork_teams":
        size = at.call(declare(module, TEAM_SIZE, T.FunctionType(T.I32, ())), [])
        if condition is not None:
            size = at.select(at.icmp("ne", condition, const_int(T.I32, 0)), size, const_int(T.I32, 1))
        team = declare(module, TEAM, TEAM_TYPE)
        at.insert(I.Call(T.VOID, "call", [size, body, *ids, *captured, team], TEAM_TYPE))
    else:
        at.call(body, [*ids, *captured])
    replace_call(block, call, at.block.instructions)


def call_tasks(module: Module) -> None:
    """Runs tasks where they are created, in place."""
    for function in list(module.functions.values()):
        replaced: dict[Value, Value] = {}
        tasks: dict[Value, _Task] = {}
        _go_on(function)
        _mark_loops_with_tasks(module, function)
        for block, call in calls_of(function, *_CREATED):
            memory, task = _created(module, function, block, call)
            tasks[memory] = tasks[call] = task
            replaced[call] = memory
        for block, call in calls_of(function, *_TASKS):
            if callee_name(call) in _TASKS:
                _run_task(module, block, call, tasks)
        replace_values(function, replaced)


def _mark_loops_with_tasks(module: Module, function: Function) -> None:
    """Marks, in place, the innermost loops that create tasks: those may run in any order, as far as none of them needs
    what another one writes. That is proved of iterations, or they stay in order."""
    blocks = [block for block, call in calls_of(function, *_TASKS[:2]) if callee_name(call) in _TASKS[:2]]
    loops = Loops.of(function) if blocks else None
    for loop in dict.fromkeys(loops.loop_of.get(block) for block in blocks) if loops is not None else ():
        for latch in loop.latches if loop is not None else ():
            if not marks_of(module, latch.terminator):
                mark(module, latch.terminator, frozenset({Mark.PARALLEL, Mark.TASKS}))


def _go_on(function: Function) -> None:
    """An untied task, which calls for another thread and returns, goes on with its next part at once.

    before    switch i32 %part, label %done [ 0, label %first   1, label %second ]
              first: store i32 1, ptr %part_of_task ... call i32 @__kmpc_omp_task(ptr @loc, i32 %id, ptr %itself)
                     br label %return

    after     switch i32 %part, label %done [ 0, label %first ]
              first: ... br label %second
    """
    parts = function.entry.terminator if function.blocks else None
    if not isinstance(parts, I.Switch):
        return
    for block, call in calls_of(function, _TASKS[0]):
        if callee_name(call) != _TASKS[0] or not isinstance(call.arguments[2], I.Load):
            continue
        before = block.instructions[: block.instructions.index(call)]
        stored = [int_value(i.operands[0]) for i in before if isinstance(i, I.Store)]
        part = next((v for v in reversed(stored) if v is not None), None)
        following = next((b for case, b in parts.cases if int_value(case) == part), None)
        if following is not None:
            block.terminator.targets = [following]
            replace_call(block, call, [])
            # Nobody begins there any more. What was computed before is known there again.
            parts.operands[:], parts.targets[:] = map(list, zip(*_kept(parts, following), strict=True))


def _kept(parts: I.Switch, gone: BasicBlock) -> list[tuple[Value, BasicBlock]]:
    """What a switch chooses from, without one of its cases."""
    default, *cases = zip(parts.operands, parts.targets, strict=True)
    return [default, *(c for c in cases if c[1] is not gone)]


@dataclass(frozen=True, eq=False)
class _Task:
    """What a task runs, and how many bytes are its head's, with what is private to it: flang's has no more than every
    task has, not even a place that says whether a task has the last iteration."""

    entry: Function
    head: int


def _created(module: Module, function: Function, block: BasicBlock, call: I.CallBase) -> tuple[Value, _Task]:
    """The memory of a task, instead of the call that creates it; and the task."""
    own, shared = (int_value(v) for v in call.arguments[3:5])
    entry = call.arguments[5]
    if own is None or shared is None or not isinstance(entry, Function):
        raise CompileError(
            "how large a task is, or what it runs, is not known before the run",
            location(module, call),
            "give the task variables of constant size",
        )
    start = -own % 8 + own
    memory = local(function, T.ArrayType(start + shared, T.I8), _ALIGN)
    at = Builder(BasicBlock())
    at.store(at.offset(memory, start), at.offset(memory, _SHARED_AT), 8)
    at.store(const_int(T.I32, 0), at.offset(memory, _PART_AT), 4)
    replace_call(block, call, at.block.instructions)
    return memory, _Task(entry, own)


def _run_task(module: Module, block: BasicBlock, call: I.CallBase, tasks: dict[Value, _Task]) -> None:
    memory = call.arguments[2]
    task = tasks.get(memory)
    if task is None:
        raise CompileError(
            "a task is run elsewhere than it is created", location(module, call), "compile without optimisation"
        )
    at = Builder(BasicBlock())
    if callee_name(call).startswith("__kmpc_taskloop"):
        mark_taskloop(module, task.entry)
        if task.head > _LAST_AT:
            lower, upper = (at.load(T.I64, p, 8) for p in call.arguments[4:6])
            last = at.cast("zext", at.icmp("sle", lower, upper), T.I32)
            at.store(last, at.offset(memory, _LAST_AT), 4)
    at.call(task.entry, [const_int(T.I32, 0), memory][: len(task.entry.function_type.parameters)])
    result = None
    if call.type != T.VOID:
        result = const_int(call.type, 0)
    replace_call(block, call, at.block.instructions)
    if result is not None:
        for instruction in block.instructions:
            instruction.operands[:] = [result if v is call else v for v in instruction.operands]
