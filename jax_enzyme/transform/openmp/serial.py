"""The serial meaning of a program that was compiled for OpenMP's threads, with marks on its worksharing loops.

A team has one member, number 0, which executes every parallel region, task, section and iteration, in the order of the
source. That is an execution that OpenMP allows. Regions that ask for their thread get teams later (`teams`).
What is a plain call or a loop over chunks becomes one here (`regions`, `sharing`); the other functions of the run-time
library have bodies in `frontends/runtime/openmp_team.cpp`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.errors import CompileError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.marks import Mark, Marks, mark, marks_of, unmark
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.sameness import does_same, is_same
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.transform.openmp.calls import PREFIX, calls_of
from jax_enzyme.transform.openmp.exceptions import let_exceptions_out
from jax_enzyme.transform.openmp.outside import mark_outside
from jax_enzyme.transform.openmp.reductions import cut_declared
from jax_enzyme.transform.openmp.regions import call_regions, call_tasks, forked, is_region
from jax_enzyme.transform.openmp.scans import join_scans
from jax_enzyme.transform.openmp.sections import hide_sections
from jax_enzyme.transform.openmp.sharing import Worksharing, worksharing_loops
from jax_enzyme.transform.openmp.synchronisation import Synchronisation

_CANCEL = ("__kmpc_cancel", "__kmpc_cancellationpoint")
_IDENTITY = ("omp_get_thread_num", "omp_get_ancestor_thread_num", "omp_get_place_num")
"""Who asks for its number may share out memory by it, and memory that looks shared then is a thread's own."""
_OF_MACHINE = ("omp_get_max_threads", "omp_get_num_procs", "omp_get_thread_limit")
_SIZES = ("__kmpc_push_num_threads", "omp_set_num_threads", "omp_get_num_threads", "omp_get_team_size")
_MEETINGS = tuple(PREFIX + name for name in ("barrier", "copyprivate", "end_reduce"))
"""Calls that all members of a team come to, and that no optimiser may have two of."""
_WAITS = PREFIX + "doacross_"
"""Calls by which an iteration waits for those before it (`ordered depend`)."""


def make_serial(module: Module, name: str) -> Module:
    """The program with one thread, in a copy; the module itself where it knows nothing of OpenMP. CompileError for
    cancellation, and for what compilers do not compile to what it means. `name` is that of the source, for messages."""
    _refuse_lost_copies(module, name)
    if not any(f.startswith(PREFIX) for f in module.functions):
        return module
    _refuse_cancellation(module, name)
    module = clone(module)
    scans = join_scans(module, name)
    regions = _within_regions(module)
    numbered = _knows_its_number(module)
    alone = numbered or _asks_for_one(module)
    teams = _may_have_teams(module)
    loops = worksharing_loops(module, teams=teams, by_number=numbered)
    meetings = Synchronisation(module, forked(module))
    hide_sections(module, [found.loop for found in loops])
    marks = [(found, _marks(found, regions, alone, meetings)) for found in loops if scans.isdisjoint(found.loop.blocks)]
    for found, words in marks:
        if words and not teams:
            cut_declared(module, found, words)
        for latch in found.loop.latches:
            if words:
                mark(module, latch.terminator, words)
    let_exceptions_out(module)
    call_tasks(module)
    call_regions(module, teams=teams)
    for function in module.functions.values():
        if teams and function.name.startswith(_MEETINGS):
            words = expanded_attributes(module, function.attributes)
            function.attributes = (*(() if "convergent" in words else ("convergent",)), *function.attributes)
    return module


def check_exclusive(module: Module, handed: Collection[str]) -> None:
    """Takes back, in place, what was said of loops that call functions of other sources, or run behind such calls:
    where those synchronise, or ask for their thread, iterations may write what others access. The module is that of a
    whole program, which is given pointers to the functions of the names `handed`."""
    numbered = _knows_its_number(module)
    defined = [f for f in module.functions.values() if f.blocks]
    marked = [f for f in defined if any(Mark.EXCLUSIVE in marks_of(module, b.terminator) for b in f.blocks)]
    meetings = Synchronisation(module, [f for f in defined if is_region(module, f)], handed) if marked else None
    for function in marked:
        for loop in Loops.of(function).all:
            for latch in loop.latches:
                held = marks_of(module, latch.terminator)
                if Mark.EXCLUSIVE in held and (numbered or (meetings and meetings.touch(loop))):
                    unmark(module, latch.terminator)
                    mark(module, latch.terminator, held - {Mark.EXCLUSIVE})
    if marked and not numbered:
        mark_outside(module, handed)


def _refuse_cancellation(module: Module, name: str) -> None:
    for function in module.functions.values():
        for _, call in calls_of(function, *_CANCEL):
            raise CompileError(
                "cancellation of OpenMP constructs is not supported: which iterations ran would depend on the threads",
                location(module, call) or name,
                "leave the directives `cancel` and `cancellation point` out, and let iterations that are not needed "
                "do nothing",
            )


def _refuse_lost_copies(module: Module, name: str) -> None:
    """clang 22 makes a copy of each section of one array in `reduction`, but code leads to one of them alone: another
    copy's place, as far from it as the section is from the array, is computed for nothing. So it is with `simd`, which
    calls no library."""
    for function in module.functions.values():
        copies = list(_copies_of_sections(function))
        if len(copies) < 2:
            continue
        used = uses(function)
        lost = [(copy, array) for copy, array in copies if not _is_led_to(copy, used)]
        for copy, array in lost:
            if any(other is not copy and _is_one_place(array, of) for other, of in copies):
                raise CompileError(
                    "several sections of one array in `reduction` are one to clang 22: what is added to the others "
                    "gets lost or overwrites other memory",
                    location(module, copy) or name,
                    "reduce one section that has all of them, or give them pointers of their own",
                )


def _copies_of_sections(function: Function) -> Iterator[tuple[I.GetElementPtr, Value]]:
    """Where the whole array would lie if a thread's copy of a section were a part of it, and that array."""
    for instruction in function.instructions():
        match instruction:
            case I.GetElementPtr(
                operands=[
                    I.Alloca(),
                    I.BinaryOp(
                        opcode="sdiv",
                        operands=[
                            I.BinaryOp(opcode="sub", operands=[I.Cast(operands=[array]), I.Cast(opcode="ptrtoint")]),
                            _,
                        ],
                    ),
                ]
            ):
                yield instruction, array
            case _:
                pass


def _is_led_to(copy: Value, used: Uses) -> bool:
    """Is a copy's place used, or loaded from the variable that has it?"""
    for user, index in used.get(copy, ()):
        if not isinstance(user, I.Store) or index != 0 or not isinstance(user.operands[1], I.Alloca):
            return True
        others = (u for u, _ in used[user.operands[1]] if u is not user)
        if not all(callee_name(other).startswith("llvm.lifetime.") for other in others):
            return True
    return False


def _is_one_place(x: Value, y: Value) -> bool:
    """Are two addresses computed alike, of the same variable?"""
    if is_same(x, y):
        return True
    if not isinstance(x, I.Load | I.GetElementPtr) or not isinstance(y, I.Instruction) or not does_same(x, y):
        return False
    return all(map(_is_one_place, x.operands, y.operands))


def _marks(found: Worksharing, regions: frozenset[Function], alone: bool, meetings: Synchronisation) -> Marks:
    if found.ordered or any(callee_name(i).startswith(_WAITS) for b in found.loop.blocks for i in b.instructions):
        return frozenset()
    if alone or found.chunks or found.function not in regions or meetings.touch(found.loop):
        return frozenset({Mark.PARALLEL})
    return frozenset({Mark.PARALLEL, Mark.EXCLUSIVE})


def _knows_its_number(module: Module) -> bool:
    return any(f.startswith(_IDENTITY) for f in module.functions)


def _may_have_teams(module: Module) -> bool:
    """Does a source name a number of threads, or ask for its thread's, so that it may mean more than one?"""
    return any(f.startswith((*_SIZES, *_IDENTITY)) for f in module.functions)


def _asks_for_one(module: Module) -> bool:
    """May a directive have a team of one thread, whose iterations need not be independent: by `num_threads(1)`,
    `omp_set_num_threads(1)`, a number there that only the run knows, or by an `if` that may be false?"""
    if any(f in module.functions for f in ("__kmpc_serialized_parallel", "__kmpc_fork_call_if")):
        return True
    for function in module.functions.values():
        for _, call in calls_of(function, "__kmpc_push_num_threads", "omp_set_num_threads"):
            if _may_be_one(call.arguments[2 if callee_name(call).startswith(PREFIX) else 0], uses(function)):
                return True
    return False


def _may_be_one(number: Value, users: Uses | None) -> bool:
    """May a number of threads be 1? Those of the machine are taken for several. With `users`, a variable is looked
    into."""
    match number:
        case I.Select():
            return any(_may_be_one(v, users) for v in number.operands[1:])
        case I.Load(operands=[I.Alloca() as variable]) if users is not None:
            found = [u for u, _ in users[variable] if not callee_name(u).startswith("llvm.lifetime.")]
            known = all(isinstance(u, I.Load) or (isinstance(u, I.Store) and u.operands[1] is variable) for u in found)
            stored = [u.operands[0] for u in found if isinstance(u, I.Store)]
            return not known or any(_may_be_one(v, None) for v in stored)
        case I.Call():
            return not callee_name(number).startswith(_OF_MACHINE)
        case _:
            return int_value(number) in (None, 1)


def _within_regions(module: Module) -> frozenset[Function]:
    """The functions that run in parallel regions alone: their bodies, and what only those call."""
    users: dict[Function, set[Function | None]] = {}
    for function in module.functions.values():
        for instruction in function.instructions():
            called = instruction.callee if isinstance(instruction, I.CallBase) else None
            for value in instruction.operands:
                if isinstance(value, Function):
                    users.setdefault(value, set()).add(function if value is called else None)
    found = set(forked(module))
    while True:
        more = {f for f, who in users.items() if f not in found and all(u in found for u in who)}
        if not more:
            return frozenset(found)
        found |= more
