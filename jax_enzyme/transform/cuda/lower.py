"""A CUDA kernel as a function of the CPU with the same parameters, which does what the whole grid does.

    thread  ->  (warp  ->)  block  ->  grid

Each arrow is one use of `group`. Warps are formed only where lanes talk to each other. Shared memory becomes a local
variable of the block. Constants of the launch and of the signature are put in first, so that loops and tables have the
sizes that they will have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.errors import LoweringError, SignatureError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name, declare, only_reached
from jax_enzyme.ir.pass_managers import PLACES_STAY
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.signature.launch import MAX_GRID, MAX_SHARED, MAX_STATIC_SHARED, Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.accesses import AccessLog, note_arguments, note_shared
from jax_enzyme.transform.cuda.axis_order import fastest_axis
from jax_enzyme.transform.cuda.blocks import Block, take_numbers
from jax_enzyme.transform.cuda.dispatch import for_divergent_group
from jax_enzyme.transform.cuda.flags import name_ways
from jax_enzyme.transform.cuda.group import Axis, Group, prepare
from jax_enzyme.transform.cuda.guarded_loops import trim_loops
from jax_enzyme.transform.cuda.halves import MARKED, shuffle_numbers
from jax_enzyme.transform.cuda.host import to_host
from jax_enzyme.transform.cuda.in_step import keep_in_step
from jax_enzyme.transform.cuda.levels import ask_for_levels
from jax_enzyme.transform.cuda.member import for_group
from jax_enzyme.transform.cuda.overlaps import Overlap, overlaps
from jax_enzyme.transform.cuda.shared_addresses import has_shared_addresses, make_pointers
from jax_enzyme.transform.cuda.shuffles import forget_lanes, lower_shuffles
from jax_enzyme.transform.cuda.spaces import SHARED, drop_spaces, uses
from jax_enzyme.transform.cuda.tiles import read_at_source
from jax_enzyme.transform.cuda.turning import OF_BLOCK, OF_WARP, turn_loops
from jax_enzyme.transform.cuda.uniform import Uniformity
from jax_enzyme.transform.cuda.whole_rows import join_rows
from jax_enzyme.transform.divisions import guard_hidden_divisions, hide_divisors, show_divisors
from jax_enzyme.transform.failure_sites import DIVIDED_BY_ZERO, DIVISION_OVERFLOWS
from jax_enzyme.transform.heap_locals import move_locals_of
from jax_enzyme.transform.input_writes import accesses_behind
from jax_enzyme.transform.joins import optimise_meetings
from jax_enzyme.transform.private_globals import globals_in, replace_in
from jax_enzyme.transform.rewriting import (
    forget_tails,
    remove_unreachable,
    replace_values,
    substitute,
)

_ATOMIC = (I.AtomicRMW, I.CmpXchg)
_OPAQUE = "je.opaque"
_VECTOR = 16
"""What shared memory is aligned to: sources access arrays of numbers as `float4`, which holds on devices."""
_FAILING = frozenset((DIVIDED_BY_ZERO, DIVISION_OVERFLOWS))
"""What divisions by the sizes of this call may come to."""
_OF_THREADS = marks.INDICES - {*marks.BLOCKS, *marks.GRID, *marks.EXTENTS}


def lower(
    module: Module,
    symbol: str,
    shape: Shape,
    constants: Mapping[int, int],
    triple: str,
    data_layout: str,
    log: AccessLog | None = None,
    *,
    open_grid: bool = False,
    open_block: tuple[int, ...] = (),
    open_shared: bool = False,
    aliased: Collection[int] = (),
    as_written: bool = False,
) -> Module:
    """A new module. `constants` are the values of integer parameters, by position. With a `log`, the function writes
    down in one more parameter what its threads do to memory. With an `open_grid`, the grid's extents are three more
    parameters, i32, which `shape.grid` bounds; so are the block's behind them, where those of the axes in `open_block`
    are what only the run knows, and with `open_shared` the bytes of dynamic shared memory, i64. `aliased` are the
    positions of pointers to memory that other parameters or variables of the file may lead to as well. `as_written`:
    every access of shared memory stays, for what looks at each of them."""
    target = (triple, data_layout)
    work, kernel, shared = _of_one_thread(module, symbol, shape, constants, target, log, open_grid, open_block, aliased)
    if open_shared:
        shape = replace(shape, shared=max(0, MAX_SHARED - _static_size(work, shared.values())))
    _check_shared(work, shared.values(), shape)
    attributes = [a.attributes for a in module.functions[symbol].arguments]
    waits = _blocks_wait(kernel, log, open_grid)
    by_extents = log is None and not as_written and not waits and not open_block
    if log is not None:
        attributes.append(())
        log.watch(work, kernel, shape)
    elif by_extents:
        shape = shape if shared or open_grid else join_rows(work, kernel, shape)
        read_at_source(work, kernel, shape, [work.globals[n] for n in shared if n in work.globals])
        name_ways(kernel)
    meets_lanes = any(_warp_operation(i) for i in kernel.instructions())
    block = Block(work, shape, open_block)
    if meets_lanes:
        block.number_threads(kernel)
        work = optimise_meetings(work, _meets, _differs)
        kernel = work.functions[symbol]
    if by_extents and block.lanes().extent > 1 and (meets_lanes or shape.block[0] > 1):
        kernel = turn_loops(work, kernel, OF_WARP if meets_lanes else OF_BLOCK)
    if log is None and any(isinstance(i, _ATOMIC) for f in work.functions.values() for i in f.instructions()):
        # Threads run one after another, in an order that atomics allow. Not before it is decided which runs when: LLVM
        # would keep what a thread's loop adds to in a register, and other threads' additions would be lost.
        work = run(work, ("lower-atomic",))
        kernel = work.functions[symbol]
    block = replace(block, module=work)
    if meets_lanes:
        kernel = _warp(work, kernel, block, waits)
        work = _cleaned(work, symbol)
        kernel = work.functions[symbol]
        block = replace(block, module=work)
        axes, most = block.of_warps(), block.most_warps
    else:
        block.number_lanes(kernel)
        axes, most = block.of_threads(), block.most
        if by_extents:
            fastest = fastest_axis(work, kernel, [(axis.index, axis.extent) for axis in axes])
            axes = tuple(sorted(axes, key=lambda axis: axis.index != fastest))
    kernel = for_group(work, kernel, Group(axes, (marks.MEET_BLOCK,), waits, most))
    _share(work, kernel, shape, shared, log, opaque=as_written)
    work = _cleaned(work, symbol)
    kernel = work.functions[symbol]
    trim_loops(kernel)
    kernel = for_group(work, kernel, _blocks(work, shape, open_grid, waits))
    _reveal(kernel)
    move_locals_of(work, [kernel])  # threads that run kernels have small stacks
    if log is not None:
        note_arguments(work, kernel)
    for block in kernel.blocks:
        block.instructions = [i for i in block.instructions if callee_name(i) != marks.SETTLED]
    kernel.attributes = ("nounwind",)
    for argument, words in zip(kernel.arguments, attributes, strict=True):
        argument.attributes = words
    take_numbers(kernel, work, open_grid=open_grid, open_block=open_block, open_shared=open_shared)
    work.functions = {
        name: f
        for name, f in work.functions.items()
        if not (f.is_declaration and name.startswith("je.")) or name in _FAILING
    }
    return work


def shared_overlaps(
    module: Module, symbol: str, shape: Shape, constants: Mapping[int, int], triple: str, data_layout: str
) -> list[Overlap]:
    """The accesses of shared memory by threads of one block between the same two barriers that are not proved apart."""
    if not any(SHARED in variable.prefix for variable in module.globals.values()):
        return []
    target = (triple, data_layout)
    work, kernel, shared = _of_one_thread(module, symbol, shape, constants, target, AccessLog(), unroll=False)
    variables = [work.globals[n] for n in shared if n in work.globals]
    replace_in(kernel, {v: v for v in variables})
    return overlaps(work, kernel, shape, variables)


def _of_one_thread(
    module: Module,
    symbol: str,
    shape: Shape,
    constants: Mapping[int, int],
    target: tuple[str, str],
    log: AccessLog | None,
    open_grid: bool = False,
    open_block: tuple[int, ...] = (),
    aliased: Collection[int] = (),
    *,
    unroll: bool = True,
) -> tuple[Module, Function, dict[str, GlobalVariable]]:
    """What one thread does, after all that it calls was inlined; and the variables of shared memory, by name."""
    work = clone(module)
    kernel = work.functions.get(symbol)
    if kernel is None or kernel.is_declaration:
        raise SignatureError(f"the module defines no function `{symbol}`")
    work.triple, work.data_layout = target
    work = only_reached(work, kernel)
    used = {v for f in work.functions.values() for i in f.instructions() for o in i.operands for v in globals_in(o)}
    work.globals = {n: v for n, v in work.globals.items() if SHARED not in v.prefix or v in used}
    if log is not None:
        log.add_argument(kernel)
    _mark_aliased(kernel, aliased)
    shared = drop_spaces(work)
    to_host(work, Block(work, shape, open_block), open_grid)
    bind_constants(kernel, constants)
    mark_for_inlining(work, [symbol, *shared])
    work = optimise_meetings(_seen_by_others(hide_divisors(work), symbol), _meets, _differs)
    work = guard_hidden_divisions(ArrayFunction(work, symbol, ())).module
    show_divisors(work)
    if has_shared_addresses(work.functions[symbol]):
        make_pointers(work, work.functions[symbol])
        work = optimise_meetings(work, _meets, _differs)
    if keep_in_step(work, work.functions[symbol], [work.globals[n] for n in shared if n in work.globals]):
        work = optimise_meetings(work, _meets, _differs)
    if unroll and _meets_in_a_loop(work.functions[symbol]):
        # Unrolled where the number of rounds is fixed, as compilers for GPUs do: then every meeting comes once.
        ask_for_levels(work, work.functions[symbol], _meets)
        work = optimise_meetings(work, _meets, _differs, unroll=True)
    kernel = _thread(work, symbol)
    shuffle_numbers(work, kernel, MARKED)
    return work, kernel, shared


def _seen_by_others(module: Module, symbol: str) -> Module:
    """Without `noalias` (`__restrict__`) on what threads write and others see where they meet: LLVM takes memory behind
    such a parameter for untouched by any call. It comes back when all threads are one function."""
    promised = any("noalias" in argument.attributes for argument in module.functions[symbol].arguments)
    if not promised or not any(_meets(i) for f in module.functions.values() for i in f.instructions()):
        return module
    module = run(module, ("always-inline", "globaldce", "sroa"))
    kernel = module.functions[symbol]
    for argument in kernel.arguments:
        if not all(isinstance(i, I.Load) for i in accesses_behind(argument, kernel)):
            argument.attributes = tuple(w for w in argument.attributes if w != "noalias")
    return module


def _blocks_wait(kernel: Function, log: AccessLog | None, open_grid: bool) -> tuple[str, ...]:
    """The meeting of all blocks, where the kernel has one; nothing where it has none."""
    if not any(callee_name(i) == marks.MEET_GRID for i in kernel.instructions()):
        return ()
    if log is not None:
        raise LoweringError(
            "blocks wait for each other at `grid.sync()`, which the search for races does not follow",
            remedy="check the parts between the barriers of the grid as kernels of their own",
        )
    if open_grid:
        raise LoweringError(
            "blocks wait for each other at `grid.sync()`, and the size of the grid is not known before the run",
            remedy="let it follow from constants and from dimensions of the signature; where one kernel is launched "
            "with many different grids, split the program",
        )
    return (marks.MEET_GRID,)


def _check_shared(module: Module, variables: Iterable[GlobalVariable], shape: Shape) -> None:
    """LoweringError for more shared memory than devices have."""
    static = _static_size(module, variables)
    if static > MAX_STATIC_SHARED:
        raise LoweringError(
            f"{static} bytes of static __shared__ memory are more than the {MAX_STATIC_SHARED} that CUDA allows",
            remedy="make it dynamic: `extern __shared__ double s[];`, and its size in shared=",
        )
    if static + shape.shared > MAX_SHARED:
        raise LoweringError(
            f"{static} bytes of static and {shape.shared} of dynamic shared memory are more than any device has "
            f"({MAX_SHARED})",
            remedy="give each block smaller tiles",
        )


def _static_size(module: Module, variables: Iterable[GlobalVariable]) -> int:
    layout = DataLayout(module)
    return sum(layout.alloc_size(v.value_type) for v in variables)


def _mark_aliased(kernel: Function, positions: Iterable[int]) -> None:
    for position in positions:
        argument = kernel.arguments[position]
        argument.attributes = (*argument.attributes, marks.ALIASED)


def bind_constants(kernel: Function, constants: Mapping[int, int]) -> None:
    """Integer parameters, by position, become numbers."""
    known: dict[Value, Value] = {
        kernel.arguments[n]: const_int(kernel.arguments[n].type, value)
        for n, value in constants.items()
        if isinstance(kernel.arguments[n].type, T.IntType)
    }
    replace_values(kernel, known)


def _thread(module: Module, symbol: str) -> Function:
    """The kernel, after all that it calls was inlined; nothing that is left may belong to a group."""
    kernel = module.functions[symbol]
    remove_unreachable(kernel)
    for function in module.functions.values():
        if function is kernel:
            continue
        for instruction in function.instructions():
            name = callee_name(instruction)
            if name in marks.INDICES or name.startswith(("je.meet.", marks.SHUFFLE)):
                raise LoweringError(
                    f"`{function.name}` is recursive or called through a pointer, and depends on its thread",
                    remedy="make it a function that can be inlined",
                )
    return kernel


def _meets_in_a_loop(kernel: Function) -> bool:
    cfg = Cfg(kernel)
    return any(_meets(i) for block in kernel.blocks if cfg.reaches(block, block) for i in block.instructions)


def _meets(instruction: I.Instruction) -> bool:
    """Whether threads wait for each other here, or send each other a value."""
    return callee_name(instruction).startswith(("je.meet.", marks.SHUFFLE))


def _differs(instruction: I.Instruction) -> bool:
    """Whether this is not the same for all threads of a block."""
    name = callee_name(instruction)
    return name in _OF_THREADS or name.startswith(marks.SHUFFLE)


def _warp_operation(instruction: I.Instruction) -> bool:
    return callee_name(instruction).startswith((marks.MEET_WARP, marks.SHUFFLE))


def _blocks(module: Module, shape: Shape, open_grid: bool, meets: tuple[str, ...]) -> Group:
    axes = [Axis(name, extent) for name, extent in zip(marks.BLOCKS, shape.grid, strict=True)]
    if open_grid:
        axes = [replace(axis, limit=partial(_extent, module, n)) for n, axis in enumerate(axes)]
    return Group(tuple(axes), meets)


def _extent(module: Module, axis: int, at: Builder) -> Value:
    return at.call(marks.index(module, marks.GRID[axis], MAX_GRID[axis]), [])


def _warp(module: Module, kernel: Function, block: Block, waits: tuple[str, ...]) -> Function:
    """From a lane to a warp. The last warp of a block may have fewer lanes."""
    common = lower_shuffles(module, kernel)
    group = Group((block.lanes(),), (marks.MEET_WARP,), (marks.MEET_BLOCK, *waits))
    prepare(kernel, group)
    facts = Uniformity(kernel, [marks.LANE], (*group.meets, *group.outer), several=group.has_several)
    if facts.decided or any(facts.cfg.reaches(met, left) for left in facts.leaving for met in facts.meeting):
        forget_lanes(kernel, common)
    if facts.decided:
        return for_divergent_group(module, kernel, group, common)
    return for_group(module, kernel, group, common)


def _share(
    module: Module, kernel: Function, shape: Shape, shared: Iterable[str], log: AccessLog | None, *, opaque: bool
) -> None:
    """Shared memory becomes local to the function of a block. All dynamic arrays are the same memory. `opaque`: until
    `_reveal` LLVM does not know how large it is, from which it would conclude what indices there are."""
    at = Builder(BasicBlock())
    places: dict[Value, Value] = {}
    dynamic: Value | None = None
    layout = DataLayout(module)
    for name in shared:
        variable = module.globals.pop(name, None)
        if variable is None:
            continue
        kind = variable.value_type
        if isinstance(kind, T.ArrayType) and kind.count == 0:
            if shape.shared == 0 and uses(kernel, variable):
                raise LoweringError(
                    f"`{name}` is dynamic shared memory, and this launch gives its blocks none",
                    remedy="say how many bytes a block needs: shared='8*n' or the like, or the third number of <<<>>>",
                )
            if dynamic is None:
                item = kind.element
                count = max(1, -(-shape.shared // layout.alloc_size(item)))
                dynamic = at.alloca(T.ArrayType(count, item), None, _VECTOR)
            places[variable] = dynamic
        else:
            align = next((int(w.removeprefix("align ")) for w in variable.suffix if w.startswith("align ")), 1)
            places[variable] = at.alloca(kind, None, max(align, _VECTOR))
    if opaque:
        hidden = declare(module, _OPAQUE, T.FunctionType(T.PTR, (T.PTR,)), ("nounwind", "willreturn", "memory(none)"))
        calls = {place_: at.call(hidden, [place_]) for place_ in dict.fromkeys(places.values())}
        places = {variable: calls[place_] for variable, place_ in places.items()}
    replace_in(kernel, places)
    forget_tails(kernel)
    if log is not None:
        for place_ in [v for v in dict.fromkeys(places.values()) if isinstance(v, I.Alloca)]:
            note_shared(module, at, kernel, place_, layout.alloc_size(place_.allocated_type))
    kernel.entry.instructions[0:0] = at.block.instructions


def _reveal(kernel: Function) -> None:
    substitute(kernel, {i: i.operands[0] for i in kernel.instructions() if callee_name(i) == _OPAQUE})


def _cleaned(module: Module, symbol: str) -> Module:
    """Local variables of the emission become values again."""
    kernel = module.functions[symbol]
    kernel.attributes = ("nounwind",)
    for argument in kernel.arguments:
        argument.attributes = tuple(w for w in argument.attributes if w.startswith(("noalias", "byval", marks.ALIASED)))
    return optimise_meetings(module, _meets, _differs, settings=PLACES_STAY)
