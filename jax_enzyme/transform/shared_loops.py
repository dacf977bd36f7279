"""Loops over independent iterations become calls of a function for some of them, which several threads may run at once.

    before    define i64 @je.primal(ptr %x, ptr %y) {       after    define i64 @je.primal(ptr %x, ptr %y, ptr %team) {
                ...                                                    ...
              loop:                                                    %run = load ptr, ptr %team
                %i = phi i64 [ 0, %entry ], [ %next, %loop ]           %way = call i64 %run(ptr %team,
                ...                                                             ptr @je.stretch.0, ptr %context,
                %next = add i64 %i, 1                                           i64 1000, i64 1)
                %more = icmp ne i64 %next, 1000                        switch i64 %way, label %rest [ ... ]
                br i1 %more, label %loop, label %rest
                                                                     define i64 @je.stretch.0(ptr %context,
                                                                                              i64 %first, i64 %last)

The *team* is that of `csrc/abi.h`: who calls the function passes one, or null, and then the loop runs here in one
piece. The stretch takes what the loop needs out of the *context*, a structure of the caller's, and calls the loop
itself, as a function whose parameters keep what is known of the buffers. What is private to an iteration it has of its
own. Where the loop is left early, by a failure, the stretch returns the number of the way, and the caller goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from jax_enzyme.analysis.independence import Independence, Independent
from jax_enzyme.analysis.loop_sizes import CALL
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import Cloner, clone, with_operands
from jax_enzyme.ir.marks import marks_of, separate
from jax_enzyme.ir.module import Function, Module, define
from jax_enzyme.ir.reach import Reached, made_of, reached
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import computed_before, local, redirect_phis, replace_operands

_FEW = 8
"""So few iterations leave threads idle: then the loop inside is shared, if it has more."""
_PIECE, _MOST_GRAINS = 1 << 12, 16
"""About the instructions of a piece, and the most grains that it has."""
WORTH = 20_000
"""A loop that executes fewer instructions than this takes less than the 20 microseconds that threads are worth."""
_ADDRESSES = (I.GetElementPtr, I.Cast, I.BinaryOp)
RUN = T.FunctionType(T.I64, (T.PTR, T.PTR, T.PTR, T.I64, T.I64))


def share_loops(function: ArrayFunction, extents: Sequence[int], rows: int) -> tuple[ArrayFunction, tuple[str, ...]]:
    """The array function with its loops over blocks shared, and with a team as its last parameter, in a copy of the
    module; the function itself where no loop can be shared. `extents` are those of the loops over blocks, outermost
    first, each more than 1, and `rows` the number of rows of threads, which may be one loop (`cuda.whole_rows`), less
    what is made apart at its ends. Second, for every loop over blocks what was decided."""
    module = clone(function.module)
    root = module.functions[function.symbol]
    facts = Independence(module, root)
    chosen: list[Independent] = []
    verdicts: list[str] = []
    for loop in facts.loops.roots:
        count = facts.count(loop) or 0
        if count == extents[0] or (loop.children and _FEW < rows // 2 < count <= rows):
            found = _best(facts, loop, extents)
            verdicts.append(
                f"on one thread: {found}" if isinstance(found, str) else f"in {found.count} parts on several threads"
            )
            if not isinstance(found, str):
                chosen.append(found)
    if not chosen:
        return function, tuple(verdicts)
    team = Argument(T.PTR, (), len(root.arguments), name="team")
    kept = [share for share in chosen if Sharing(module, root, team, facts, share).run()]
    if not kept:
        return function, ("on one thread: they depend on an address that is computed before",)
    take_team(root, team)
    return replace(function, module=module), tuple(verdicts)


def take_team(root: Function, team: Argument) -> None:
    """The team becomes the last parameter of an array function, in place."""
    root.arguments.append(team)
    kind = root.function_type
    root.value_type = T.FunctionType(kind.result, (*kind.parameters, T.PTR))
    root.attributes = ("uwtable",)
    for argument in root.arguments:
        argument.attributes = tuple(w for w in argument.attributes if not w.startswith("captures"))


def _best(facts: Independence, loop: Loop, extents: Sequence[int]) -> Independent | str:
    """The loop over blocks to share, the outermost one unless it is short; or why there is none."""
    outer = facts.examine(loop, True)
    inner = [c for c in loop.children if len(extents) > 1 and facts.count(c) == extents[1]]
    if len(inner) != 1 or (not isinstance(outer, str) and outer.count >= min(_FEW, extents[1])):
        return outer
    found = _best(facts, inner[0], extents[1:])
    return outer if isinstance(found, str) else found


class Sharing:
    """Takes one loop out of the root function."""

    def __init__(self, module: Module, root: Function, team: Argument, facts: Independence, share: Independent) -> None:
        self._module = module
        self._root = root
        self._team = team
        self._facts = facts
        self._share = share
        self._raw = False
        self._blocks = [b for b in root.blocks if b in share.loop.blocks]
        self._inside: set[Value] = {i for b in self._blocks for i in b.instructions}
        self._ways = [e for e in share.loop.exit_edges if e[0] is not share.loop.latches[0]]

    def run(self) -> bool:
        """False where the loop cannot be taken out."""
        passed = self._passed()
        if passed is None:
            return False
        number = sum(1 for n in self._module.functions if n.startswith("je.stretch.") and n.count(".") == 2)
        body, _ = self._body(passed, f"je.stretch.{number}.body")
        if self._piece() > 1:
            body = self._in_pieces(passed, body)
        stretch = self._stretch(passed, body, f"je.stretch.{number}")
        self._call(passed, body, stretch)
        return True

    # -- what the loop needs

    def _passed(self) -> list[Value] | None:
        """The values from before that become parameters: buffers, local memory and numbers. None where there is another
        address among them."""
        found: dict[Value, None] = {}
        needed = Reached[Value](
            (*(self._start(phi) for phi, _ in self._share.counters), *self._named()),
            lambda v: (
                v not in self._inside and v not in self._share.private and isinstance(v, Argument | I.Instruction)
            ),
        )
        for instruction in (i for b in self._blocks for i in b.instructions):
            needed.add(v for v in instruction.operands if not self._is_counter_start(instruction, v))
        for value in needed:
            if not T.is_pointer(value.type) or isinstance(value, Argument) or self._is_local(value):
                found[value] = None
            elif self._made_again(value):
                needed.add(made_of(value))
            elif marks_of(self._module, self._share.loop.latches[0].terminator):
                found[value] = None
                self._raw = True
            else:
                return None
        order: dict[Value, int] = {v: n for n, v in enumerate([*self._root.arguments, *self._root.instructions()])}
        return sorted(found, key=order.__getitem__)

    def _named(self) -> Iterable[Value]:
        """What is needed besides what the loop's instructions name."""
        return ()

    def _is_counter_start(self, instruction: I.Instruction, value: Value) -> bool:
        return (
            isinstance(instruction, I.Phi) and instruction in dict(self._share.counters) and value not in self._inside
        )

    def _start(self, phi: I.Phi) -> Value:
        return next(v for v, b in phi.incoming if b not in self._share.loop)

    @staticmethod
    def _is_local(value: Value) -> bool:
        return isinstance(value, I.Alloca | I.Call)

    @staticmethod
    def _made_again(value: Value) -> bool:
        return isinstance(value, _ADDRESSES) and T.is_pointer(value.type)

    # -- the loop

    def _body(self, passed: list[Value], name: str) -> tuple[Function, Cloner]:
        """The function that runs iterations `first` to `last`, and what of it is a copy of what."""
        arguments = [self._parameter(v, n) for n, v in enumerate(passed)]
        first = Argument(T.I64, (), len(arguments), name="first")
        last = Argument(T.I64, (), len(arguments) + 1, name="last")
        results = self._results(len(arguments) + 2)
        entry = BasicBlock(name="entry")
        cloner = Cloner({v: a for v, a in zip(passed, arguments, strict=True)})
        at = Builder(entry)
        self._own_memory(cloner, at)
        for value in self._needed_addresses():
            at.insert(_filled(cloner, value))
        blocks, loop = cloner.blocks(self._blocks), self._share.loop  # ways out of the loop stay as they are for now
        starts = self._counter_starts(cloner, at, first) | self._sum_starts(cloner)
        for phi, start in starts.items():
            copy, ends = cloner.map[phi], loop.ends(phi)
            assert isinstance(copy, I.Phi) and ends is not None
            copy.incoming = [(start, entry), (cloner.value(ends[1]), _block(cloner, loop.latches[0]))]
        done = BasicBlock(name="done")
        ways = self._leave_early(cloner)
        self._count(cloner, first, last, done, entry)
        at.br(_block(cloner, loop.header))
        end = Builder(done)
        self._deliver(cloner, end, results)
        end.ret(const_int(T.I64, 0))
        self._free_at_end(cloner, [done, *ways])
        parameters = [*arguments, first, last, *results]
        return self._define(name, parameters, [entry, *blocks, done, *ways], ("noinline", "uwtable")), cloner

    def _define(
        self, name: str, arguments: list[Argument], blocks: list[BasicBlock], words: tuple[str, ...] = ("uwtable",)
    ) -> Function:
        return define(self._module, name, T.I64, arguments, blocks, attributes=words)

    # What a range of iterations gives back besides: nothing, where iterations have no more to do with one another.

    def _results(self, number: int) -> list[Argument]:
        return []

    def _sum_starts(self, cloner: Cloner) -> dict[I.Phi, Value]:
        return {}

    def _deliver(self, cloner: Cloner, at: Builder, results: list[Argument]) -> None:
        pass

    def _parameter(self, value: Value, number: int) -> Argument:
        words: tuple[str, ...] = ()
        if isinstance(value, Argument):
            # What the whole function writes before it reads is not what its loop does: LLVM would leave out the
            # clearing in front of the loop.
            words = tuple(w for w in value.attributes if not w.startswith(("captures", "initializes")))
        elif T.is_pointer(value.type) and not self._facts.is_reached_otherwise(value):
            words = ("noalias",)
        if self._raw:
            # A pointer may lead to what another one leads to.
            words = tuple(w for w in words if w != "noalias")
        return Argument(value.type, words, number, name=value.name)

    def _own_memory(self, cloner: Cloner, at: Builder) -> None:
        """Private memory, all of it zero where any of the caller's was cleared, in whatever way: the rest of that holds
        nothing that the program may read."""
        for site in self._share.private:
            assert isinstance(site, I.Instruction)
            at.insert(_filled(cloner, site))
        for site, size in self._facts.cleared(self._share):
            pointer, zero, length = cloner.value(site), const_int(T.I8, 0), const_int(T.I64, size)
            Declarations(self._module).memory(at, "memset", pointer, zero, length)

    def _needed_addresses(self) -> list[I.Instruction]:
        """Addresses that were computed before the loop and are computed again, definitions first."""
        operands = (o for b in self._blocks for i in b.instructions for o in i.operands)
        needed = reached(operands, made_of, lambda v: v not in self._inside and self._made_again(v))
        return [i for i in self._root.instructions() if i in needed]

    def _counter_starts(self, cloner: Cloner, at: Builder, first: Argument) -> dict[I.Phi, Value]:
        found: dict[I.Phi, Value] = {}
        for phi, step in self._share.counters:
            passed = at.narrow(first, phi.type)
            offset = at.binary("mul", passed, const_int(phi.type, step))
            found[phi] = at.binary("add", cloner.value(self._start(phi)), offset)
        for phi, later in self._share.firsts:
            is_first = at.icmp("eq", first, const_int(T.I64, 0))
            found[phi] = at.select(is_first, cloner.value(self._start(phi)), cloner.value(later))
        return found

    def _leave_early(self, cloner: Cloner) -> list[BasicBlock]:
        """Returns that give the number of the way by which the loop was left, counted from 1."""
        found: list[BasicBlock] = []
        for number, (source, target) in enumerate(self._ways, 1):
            block = BasicBlock(name=f"way{number}")
            Builder(block).ret(const_int(T.I64, number))
            terminator = _block(cloner, source).terminator
            terminator.targets = [block if t is target else t for t in terminator.targets]
            found.append(block)
        return found

    def _count(self, cloner: Cloner, first: Argument, last: Argument, done: BasicBlock, entry: BasicBlock) -> None:
        """The loop ends after its last iteration here, by a counter of its own."""
        header, latch = _block(cloner, self._share.loop.header), _block(cloner, self._share.loop.latches[0])
        number = I.Phi(T.I64, "phi", [first], targets=[entry], name="iteration")
        header.instructions.insert(0, number)
        del latch.instructions[-1]
        at = Builder(latch)
        at.count_on(number, header, last, done)
        apart = [cloner.value(access) for access in self._facts.separate(self._share)]
        separate(self._module, latch.terminator, [a for a in apart if isinstance(a, I.Instruction)])

    def _free_at_end(self, cloner: Cloner, ends: list[BasicBlock]) -> None:
        made = [cloner.value(s) for s in self._share.private if isinstance(s, I.Call)]
        for end in ends:
            for memory in made:
                Declarations(self._module).memory(Builder.at_end(end), "free", memory)

    # -- pieces

    def _piece(self) -> int:
        """How many iterations are run in one go, by whomever. LLVM may run the last ones of a loop in another way than
        those before (without vectors, whose functions of math.h round differently), and so results would depend on
        where one thread ends and the next one starts. 1: whole iterations are vectors, nothing depends on it."""
        grain = self._facts.grain(self._share.loop)
        if grain == 1:
            return 1
        work = sum(CALL if isinstance(i, I.CallBase) else 1 for i in self._inside)
        return grain * max(1, min(_MOST_GRAINS, _PIECE // (grain * work)))

    def _in_pieces(self, passed: list[Value], body: Function) -> Function:
        """A function that runs `body` piece by piece."""
        arguments = [Argument(v.type, (), n, name=v.name) for n, v in enumerate(passed)]
        first = Argument(T.I64, (), len(arguments), name="first")
        last = Argument(T.I64, (), len(arguments) + 1, name="last")
        at = Builder(BasicBlock(name="entry"))

        def run(at: Builder, low: Value, high: Value) -> Value:
            return at.call(body, [*arguments, low, high])

        blocks = self._in_turn(at, first, last, self._piece(), run)
        return self._define(f"{body.name}.pieces", [*arguments, first, last], blocks)

    @staticmethod
    def _in_turn(
        at: Builder, first: Value, last: Value, length: int, run: Callable[[Builder, Value, Value], Value]
    ) -> list[BasicBlock]:
        """The blocks of a function that runs parts of so many, from the first to the last, until one is left early."""
        entry, each, step, end = at.block, *(BasicBlock(name=n) for n in ("each", "step", "end"))
        at.br(each)
        at = Builder(each)
        low = at.phi(T.I64, [(first, entry)])
        behind = at.binary("add", low, const_int(T.I64, length), ("nuw", "nsw"))
        high = at.least(behind, last)
        way = run(at, low, high)
        at.cond_br(at.icmp("eq", way, const_int(T.I64, 0)), step, end)
        at = Builder(step)
        low.add(high, step)
        at.cond_br(at.icmp("ult", high, last), each, end)
        at = Builder(end)
        at.ret(at.phi(T.I64, [(way, each), (const_int(T.I64, 0), step)]))
        return [entry, each, step, end]

    # -- the call

    def _stretch(self, passed: list[Value], body: Function, name: str) -> Function:
        """The function that a team calls."""
        context, first, last = arguments = stretch_arguments()
        at = Builder(BasicBlock(name="entry"))
        kind = structure(passed)
        values = [at.load(v.type, at.field(kind, context, n)) for n, v in enumerate(passed)]
        at.ret(at.call(body, [*values, first, last]))
        return self._define(name, arguments, [at.block])

    def _call(self, passed: list[Value], body: Function, stretch: Function) -> None:
        """The loop's place is taken by its call, alone or by the team."""
        loop = self._share.loop
        before = loop.front
        alone, together, after = (BasicBlock(name=n) for n in ("alone", "together", "after"))
        at = Builder(before)
        del before.instructions[-1]
        count = self._length(at)
        self._name_counted(at, count)
        is_alone = at.icmp("eq", self._team, ConstantNull(T.PTR))
        if self._share.length is not None:
            few = at.icmp("ult", count, const_int(T.I64, -(-WORTH // self._facts.each(loop))))
            is_alone = at.binary("or", is_alone, few)
        at.cond_br(is_alone, alone, together)
        single = Builder(alone)
        by_one = single.call(body, [*passed, const_int(T.I64, 0), count])
        single.br(after)
        shared = Builder(together)
        kind = structure(passed)
        context = local(self._root, kind, 16, "context")
        for number, value in enumerate(passed):
            shared.store(value, shared.field(kind, context, number))
        run = shared.load(T.PTR, self._team, 8)
        grain = const_int(T.I64, self._piece())
        by_all = shared.call(run, [self._team, stretch, context, count, grain], RUN)
        shared.br(after)
        end = Builder(after)
        way = end.phi(T.I64, [(by_one, alone), (by_all, together)])
        self._leave(end, way, [alone, together, after])

    def _length(self, at: Builder) -> Value:
        """How many iterations there are."""
        length = self._share.length
        return const_int(T.I64, self._share.count) if length is None else computed_before(at, length)

    def _name_counted(self, at: Builder, count: Value) -> None:
        """What is used behind the loop of its counters is computed before it."""
        steps, found = dict(self._share.counters), dict[Value, Value]()
        for value, phi, behind in self._share.counted:
            number = at.binary("sub", count, const_int(T.I64, behind)) if behind else count
            number = at.narrow(number, phi.type)
            grown = at.binary("mul", number, const_int(phi.type, steps[phi]))
            found[value] = at.binary("add", self._start(phi), grown)
        outside = (i for b in self._root.blocks if b not in self._share.loop for i in b.instructions)
        replace_operands(outside, found)

    def _leave(self, end: Builder, way: Value, blocks: list[BasicBlock]) -> None:
        """Goes on behind the loop, or where it was left early; `blocks` take its place in the function."""
        loop = self._share.loop
        behind = next(t for t in loop.latches[0].successors if t not in loop)
        redirect_phis(behind, loop.latches[0], end.block)
        switch = I.Switch(T.VOID, "switch", [way], targets=[behind])
        for number, (source, target) in enumerate(self._ways, 1):
            block = BasicBlock(name=f"failed{number}")
            Builder(block).br(target)
            redirect_phis(target, source, block)
            switch.add(const_int(T.I64, number), block)
            blocks.append(block)
        end.insert(switch)
        index = self._root.blocks.index(loop.front) + 1
        self._root.blocks[index:index] = blocks
        self._root.blocks = [b for b in self._root.blocks if b not in loop.blocks]
        self._root.trailing_records = []


def stretch_arguments() -> list[Argument]:
    """The parameters of what a team calls: the context, and which iterations."""
    return [
        Argument(T.PTR, ("noalias", "readonly"), 0, name="context"),
        Argument(T.I64, (), 1, name="first"),
        Argument(T.I64, (), 2, name="last"),
    ]


def structure(values: Sequence[Value]) -> T.StructType:
    """A structure with a field for each of some values."""
    return T.StructType(tuple(v.type for v in values))


def _block(cloner: Cloner, block: BasicBlock) -> BasicBlock:
    found = cloner.map[block]
    assert isinstance(found, BasicBlock)
    return found


def _filled(cloner: Cloner, source: I.Instruction) -> I.Instruction:
    """A copy of an instruction whose operands have copies."""
    cloner.map[source] = copy = with_operands(source, [cloner.value(v) for v in source.operands])
    return copy
