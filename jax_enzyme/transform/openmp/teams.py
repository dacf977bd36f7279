"""Regions that ask for their thread run as so many members, one after the other from one barrier to the next.

    before    call void (i32, ptr, ...) @je_team(i32 4, ptr @f.omp_outlined, ptr %id, ptr %bound, ptr %part)
              define void @f.omp_outlined(...) { ... %t = call i32 @je_member() ... call void @je_meet() ... }

    after     call void @je.team.0(ptr %id, ptr %bound, ptr %part, i32 4)
              define void @je.team.0(..., i32 %n) { for t < n { ... up to the barrier }  for t < n { ... } }

A team of one means the same as the serial program, and is left to that: where no thread is asked for, and where nobody
names a number. How many members a region has is `num_threads`, `omp_set_num_threads`, or what the kernel's options say.
A region in a region with a team has one member. Variables that each thread has of its own are arrays, with an element
for each member.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import linking
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import function_location, location
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name, declare
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import BasicBlock, ConstantAggregate, Value, int_value
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.group import Axis, Group
from jax_enzyme.transform.cuda.member import for_group
from jax_enzyme.transform.heap_locals import move_locals_of
from jax_enzyme.transform.joins import optimise_meetings
from jax_enzyme.transform.openmp.calls import PREFIX, TEAM, calls_of, replace_call
from jax_enzyme.transform.openmp.synchronisation import calls_a_pointer, known_by_address
from jax_enzyme.transform.rewriting import add_parameter, remove_unreachable, replace_values, substitute

_ASKS = ("omp_get_thread_num", "omp_get_num_threads", "omp_get_team_size", "omp_get_ancestor_thread_num")
_NAMES = (f"{PREFIX}push_num_threads", "omp_set_num_threads")
_MEMBER, _MEMBERS = marks.THREADS[0], marks.GRID[0]
_SLOT, _OUTER, _WITHIN, _MEET = "je_slot", "je_slot.outer", "je_within", "je_meet"
_ADDRESS = "llvm.threadlocal.address"
_OWN = (_ADDRESS, f"{PREFIX}threadprivate_cached")
TEAM_FUNCTION = "je.team."
_MOST = 64
"""Members of a team whose number only the run knows."""


def lower_teams(module: Module, threads: int, handed: Collection[str]) -> Module:
    """A new module without calls of `je_team`; the module itself where there are none. A region that names no number
    has `threads` members. `handed`: the functions that the program is given pointers to. LoweringError for recursive
    functions, and those that are called through pointers, that ask for their thread."""
    if TEAM not in module.functions:
        return module
    work = clone(module)
    _return(work, "je_threads", threads)
    most = _most(work, threads)
    if most > 1:
        callers = _callers(work, handed)
        asking = _reaching(work, callers, _ASKS)
        if any(body in asking for body in _inner_first(work)):  # then what each thread has of its own is asked for too
            asking = _reaching(work, callers, (*_ASKS, *_OWN))
        pointed = [f.name for f in _by_address(work, handed) if f in asking]
        names = [f.name for f in _inner_first(work) if f in asking]
        _return(work, "je_most", most)
        if names:
            _give_each_its_own(work, most)
        for number, name in enumerate(names):
            team = f"{TEAM_FUNCTION}{number}"
            work = _with_team(work, name, team, most, pointed)
    _call_plainly(work)
    _return(work, _SLOT, 0)
    del work.functions[TEAM]
    return work


# -- which regions, and how many


def _by_address(module: Module, handed: Collection[str]) -> list[Function]:
    """The functions that may be called through pointers. Those that have bodies of regions call those."""
    bodies = _inner_first(module)
    return [f for f in known_by_address(module, handed) if f not in bodies]


def _callers(module: Module, handed: Collection[str]) -> Mapping[Value, Collection[Value]]:
    """Of each function, those that name it, or may call it through a pointer."""
    by_address = _by_address(module, handed)
    callers: dict[Value, dict[Value, None]] = {}
    for function in module.functions.values():
        for instruction in function.instructions():
            named = [v for v in instruction.operands if isinstance(v, Function)]
            for value in (*named, *(by_address if calls_a_pointer(instruction) else ())):
                callers.setdefault(value, {})[function] = None
    return callers


def _reaching(
    module: Module, callers: Mapping[Value, Collection[Value]], prefixes: tuple[str, ...]
) -> Collection[Value]:
    """The functions that call one of these, directly or not."""
    asked: list[Value] = [f for name, f in module.functions.items() if name.startswith(prefixes)]
    return reached(asked, lambda value: callers.get(value, ()))


def _inner_first(module: Module) -> list[Function]:
    """The bodies of regions, those that others contain before those."""
    bodies = {
        call.arguments[1]: None for f in module.functions.values() for _, call in calls_of(f, TEAM) if _is_team(call)
    }
    found = [b for b in bodies if isinstance(b, Function)]
    return sorted(found, key=lambda body: len(_below(body)))


def _below(function: Function) -> Collection[Function]:
    """A function and what it calls, directly or not."""
    return reached([function], lambda f: (v for i in f.instructions() for v in i.operands if isinstance(v, Function)))


def _most(module: Module, threads: int) -> int:
    """How many members a team has at most, if numbers that are known say so."""
    simple = run(module, ("sroa", "sccp"))
    sizes = [threads]
    for function in simple.functions.values():
        for _, call in calls_of(function, *_NAMES):
            wanted = call.arguments[2 if callee_name(call).startswith(PREFIX) else 0]
            if isinstance(wanted, GlobalVariable) and wanted.is_constant and wanted.initializer is not None:
                wanted = wanted.initializer
            number = int_value(wanted)
            sizes.append(_MOST if number is None else number)
    return max(sizes)


# -- memory


def _give_each_its_own(module: Module, most: int) -> None:
    """Variables of threads become arrays, with an element for each member."""
    own: set[Value] = {v for v in module.globals.values() if any(w.startswith("thread_local") for w in v.prefix)}
    cached = [found for f in module.functions.values() for found in calls_of(f, f"{PREFIX}threadprivate_cached")]
    for _, call in cached:
        if not isinstance(call.arguments[2], GlobalVariable):
            raise LoweringError(
                "a threadprivate variable of a region that asks for its thread is not known",
                location(module, call),
                "make it a variable of the file, or an array with an element for each thread",
            )
        own.add(call.arguments[2])
    for function in list(module.functions.values()):
        replaced: dict[Value, Value] = {}
        for block, call in calls_of(function, _ADDRESS, f"{PREFIX}threadprivate_cached"):
            variable = call.arguments[0 if callee_name(call).startswith(_ADDRESS) else 2]
            assert isinstance(variable, GlobalVariable)
            at = Builder(BasicBlock())
            slot = at.call(declare(module, _SLOT, T.FunctionType(T.I32, ())), [])
            replaced[call] = at.gep(variable.value_type, variable, [at.cast("sext", slot, T.I64)])
            replace_call(block, call, at.block.instructions)
        replace_values(function, replaced)
    for variable in own:
        assert isinstance(variable, GlobalVariable)
        kind = T.ArrayType(most, variable.value_type)
        if variable.initializer is not None:
            variable.initializer = ConstantAggregate(kind, [variable.initializer] * most)
        variable.value_type = kind
        variable.prefix = tuple(w for w in variable.prefix if not w.startswith(("thread_local", "common")))


# -- calls


def _is_team(call: I.CallBase) -> bool:
    return callee_name(call) == TEAM


def _call_team(module: Module, name: str, team: str) -> None:
    """Calls of a region become calls of its team; in a region with a team, and where it is called directly (if a clause
    is false), that has one member."""
    body = module.functions[name]
    kind = T.FunctionType(T.VOID, (*body.function_type.parameters, T.I32))
    one = const_int(T.I32, 1)
    for function in list(module.functions.values()):
        for block, call in calls_of(function, TEAM, name):
            at = Builder(BasicBlock())
            arguments, size = call.arguments, one
            if _is_team(call):
                size, called, *arguments = arguments
                if called is not body:
                    continue
                within = at.call(declare(module, _WITHIN, T.FunctionType(T.I32, ())), [])
                size = at.select(at.icmp("ne", within, const_int(T.I32, 0)), one, size)
            elif call.callee is not body:
                continue
            at.call(declare(module, team, kind), [*arguments, size])
            if isinstance(call, I.Invoke):
                at.br(call.targets[0])
            replace_call(block, call, at.block.instructions)


def _call_plainly(module: Module) -> None:
    for function in module.functions.values():
        for block, call in calls_of(function, TEAM):
            if _is_team(call):
                at = Builder(BasicBlock())
                _, body, *arguments = call.arguments
                assert isinstance(body, Function)
                at.call(body, arguments)
                replace_call(block, call, at.block.instructions)


# -- a team


def _with_team(module: Module, name: str, team: str, most: int, pointed: Collection[str]) -> Module:
    """The module with what the team of a region does. Both are one program: they have the same variables. `pointed` are
    the functions that ask for their thread and may be called through pointers."""
    part = clone(module)
    for variable, copy in zip(module.globals.values(), part.globals.values(), strict=True):
        if variable.initializer is not None and not variable.is_constant and not variable.name.startswith("llvm."):
            variable.prefix = tuple(w for w in variable.prefix if w not in LINKAGE)
            copy.prefix, copy.initializer = ("external", *variable.prefix), None
            copy.suffix = tuple(w for w in copy.suffix if not w.startswith("comdat"))
    _call_team(module, name, team)
    body = part.functions.pop(name)
    body.name, body.prefix = team, ()
    part.functions[team] = body
    _be_member(part, most)
    mark_for_inlining(part, [team])
    part = optimise_meetings(part, _meets, _differs)
    if any(isinstance(i, I.Invoke) for i in part.functions[team].instructions()):
        _check_exceptions(part, part.functions[team])
        part = run(part, ("lower-invoke",))
    body = part.functions[team]
    remove_unreachable(body)
    _check_inlined(part, body)
    if pointed and any(calls_a_pointer(i) for f in part.functions.values() for i in f.instructions()):
        raise _dependent(module, module.functions[min(pointed)])
    _move_long_locals(part, body)
    _meet_at_the_end(part, body)
    size = Axis(_MEMBER, most, lambda at: at.call(marks.index(part, _MEMBERS, most + 1), []))
    made = for_group(part, body, Group((size,), (marks.MEET_BLOCK,)))
    count = add_parameter(made, "", type_=T.I32)
    substitute(made, {i: count for i in made.instructions() if callee_name(i) == _MEMBERS})
    made.prefix, made.attributes = (), ("nounwind",)
    for argument in made.arguments:
        argument.attributes = ()
    for unused in (_MEMBER, _MEMBERS, marks.MEET_BLOCK):
        part.functions.pop(unused, None)
    part.functions = {_SLOT if n == _OUTER else n: f for n, f in part.functions.items()}
    if _SLOT in part.functions:
        part.functions[_SLOT].name = _SLOT
    part.triple = part.data_layout = ""
    return parse(linking.link(to_text(module), [to_text(part)]))


def _move_long_locals(module: Module, body: Function) -> None:
    """Variables of a length that only the run knows go to the heap, in place, where each member makes its own."""
    if not _long_locals(body):
        return
    move_locals_of(module, [body])
    for variable in _long_locals(body):
        raise LoweringError(
            "an array whose length only the run knows is made again and again in a parallel region that asks for its"
            " thread",
            location(module, variable) or function_location(module, body),
            "declare it outside of the loop, or allocate it",
        )


def _long_locals(body: Function) -> list[I.Alloca]:
    return [i for i in body.instructions() if isinstance(i, I.Alloca) and int_value(i.operands[0]) != 1]


def _meet_at_the_end(module: Module, body: Function) -> None:
    """A region ends with a barrier: who is there while another is at one inside has missed that."""
    if not any(callee_name(i) == marks.MEET_BLOCK for i in body.instructions()):
        return
    end = BasicBlock(name="end")
    for block in body.blocks:
        if isinstance(block.terminator, I.Return):
            block.instructions.pop()
            Builder(block).br(end)
    at = Builder(end)
    at.call(marks.meeting(module, marks.MEET_BLOCK), [])
    at.ret()
    body.blocks.append(end)


def _be_member(module: Module, most: int) -> None:
    """What is asked of a thread has its meaning for a member of a team."""
    member = marks.index(module, _MEMBER, most)
    _return(module, "je_member", member)
    _return(module, "je_members", marks.index(module, _MEMBERS, most + 1))
    _return(module, _WITHIN, 1)
    if _MEET in module.functions:
        at = Builder(BasicBlock())
        at.call(marks.meeting(module, marks.MEET_BLOCK), [])
        at.ret()
        module.functions[_MEET].blocks = [at.block]
    if _SLOT in module.functions:
        outer = declare(module, _OUTER, T.FunctionType(T.I32, ()))
        at = Builder(BasicBlock())
        at.ret(at.binary("add", at.call(outer, []), at.call(member, [])))
        module.functions[_SLOT].blocks = [at.block]


def _return(module: Module, name: str, value: int | Function) -> None:
    """Gives a function without parameters another body: it returns a number, or what another function does."""
    function = module.functions.get(name)
    if function is not None:
        at = Builder(BasicBlock())
        at.ret(const_int(T.I32, value) if isinstance(value, int) else at.call(value, []))
        function.blocks = [at.block]


def _meets(instruction: I.Instruction) -> bool:
    return marks.is_meeting(instruction)


def _differs(instruction: I.Instruction) -> bool:
    return callee_name(instruction) == _MEMBER


def _check_exceptions(module: Module, body: Function) -> None:
    """No exception leaves a region, so that one which nobody catches ends the program, with or without a way for it."""
    cfg = Cfg(body)
    ends = [b for b in body.blocks if isinstance(b.terminator, I.Return)]
    for block in body.blocks:
        pad = next((i for i in block.instructions if isinstance(i, I.LandingPad)), None)
        if pad is not None and any(cfg.reaches(block, end) for end in ends):
            raise LoweringError(
                "an exception is caught in a parallel region that asks for its thread",
                location(module, pad),
                "let what may fail say so by its result, or by a flag of the thread's",
            )


def _check_inlined(module: Module, body: Function) -> None:
    for function in module.functions.values():
        own = any(_meets(i) or _differs(i) for i in function.instructions())
        if (own and function is not body) or any(v is body for i in function.instructions() for v in i.operands):
            raise _dependent(module, function)


def _dependent(module: Module, function: Function) -> LoweringError:
    return LoweringError(
        f"`{function.name}` is recursive or called through a pointer, and depends on its thread",
        function_location(module, function),
        "make it a function that can be inlined, or give it the number of the thread",
    )
