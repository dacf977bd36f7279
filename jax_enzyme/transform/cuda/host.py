"""NVVM IR of one thread to IR of the CPU that still is one thread's.

Special registers become constants of the launch or indices (`marks`), barriers and warp operations meetings,
libdevice's functions those of C's library. What has no meaning on a CPU is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, Module, callee_name, declare
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.cuda import marks, ptx
from jax_enzyme.transform.cuda.blocks import Block
from jax_enzyme.transform.cuda.library import library_call
from jax_enzyme.transform.cuda.shuffles import source_lane
from jax_enzyme.transform.rewriting import place, redirect_phis, replace_values

_REGISTER = re.compile(r"llvm\.nvvm\.read\.ptx\.sreg\.([a-z0-9.]+)$")
_DROPPED_WORDS = ("convergent", '"target-cpu"', '"target-features"', "optnone", "strictfp", "noduplicate")
_NOTHING = ("llvm.nvvm.membar.", "llvm.nvvm.fence.", "llvm.nvvm.nanosleep", "llvm.nvvm.prefetch", "llvm.nvvm.exit.hint")
_MEETINGS: Mapping[str, tuple[str, str]] = {
    "llvm.nvvm.barrier.cta.sync.aligned.all": (marks.MEET_BLOCK, ""),
    "llvm.nvvm.barrier.cta.sync.all": (marks.MEET_BLOCK, ""),
    "llvm.nvvm.barrier0": (marks.MEET_BLOCK, ""),
    "llvm.nvvm.barrier.cta.red.popc.aligned.all": (marks.MEET_BLOCK, "count"),
    "llvm.nvvm.barrier.cta.red.and.aligned.all": (marks.MEET_BLOCK, "and"),
    "llvm.nvvm.barrier.cta.red.or.aligned.all": (marks.MEET_BLOCK, "or"),
    "llvm.nvvm.barrier0.popc": (marks.MEET_BLOCK, "count"),
    "llvm.nvvm.barrier0.and": (marks.MEET_BLOCK, "and"),
    "llvm.nvvm.barrier0.or": (marks.MEET_BLOCK, "or"),
    "__je_barrier_count": (marks.MEET_BLOCK, "count"),
    "__je_barrier_and": (marks.MEET_BLOCK, "and"),
    "__je_barrier_or": (marks.MEET_BLOCK, "or"),
    "__je_warp_sync": (marks.MEET_WARP, ""),
    "llvm.nvvm.bar.warp.sync": (marks.MEET_WARP, ""),
    "__je_ballot": (marks.MEET_WARP, "ballot"),
    "__je_any": (marks.MEET_WARP, "any"),
    "__je_all": (marks.MEET_WARP, "all"),
    "__je_active_mask": (marks.MEET_WARP, "ballot"),
    "llvm.nvvm.vote.ballot.sync": (marks.MEET_WARP, "ballot"),
    "llvm.nvvm.vote.any.sync": (marks.MEET_WARP, "any"),
    "llvm.nvvm.vote.all.sync": (marks.MEET_WARP, "all"),
}
_GRID_SYNC = "__je_grid_sync"
_SHUFFLES = re.compile(r"llvm\.nvvm\.shfl\.sync\.(up|down|bfly|idx)\.([if]32)(p?)$")
_SUMS = {"__je_shuffle_sum_f32", "__je_shuffle_sum_f64"}
_PLAIN_SHUFFLES = {"__je_shuffle_i32", "__je_shuffle_i64", "__je_shuffle_f32", "__je_shuffle_f64", *_SUMS}
_LANE_MASKS: Mapping[str, tuple[bool, bool, bool]] = {
    "lanemask_lt": (True, False, False), "lanemask_le": (True, True, False), "lanemask_eq": (False, True, False),
    "lanemask_ge": (False, True, True), "lanemask_gt": (False, False, True),
}  # fmt: skip
_SUBSET_BARRIER = re.compile(r"llvm\.nvvm\.(barrier\.cta|barrier\.sync|barrier\.n|barrier\b)")


def to_host(module: Module, block: Block, open_grid: bool = False) -> None:
    """Rewrites all functions of a private module whose address spaces are gone. The extents of an open grid are what
    only the run knows (`marks.GRID`), and those in `block.shape` are the largest."""
    # Device code never unwinds; a group without a word would be no group.
    module.attribute_groups = {k: _kept(words) or ("nounwind",) for k, words in module.attribute_groups.items()}
    module.named_metadata = {k: v for k, v in module.named_metadata.items() if not k.startswith(("nvvm", "nvvmir"))}
    for name in ("llvm.used", "llvm.compiler.used"):
        module.globals.pop(name, None)
    for function in list(module.functions.values()):
        function.prefix = tuple(w for w in function.prefix if w not in ("ptx_kernel", "ptx_device"))
        function.attributes = _kept(function.attributes)
        if not function.is_declaration:
            _Host(module, block, function, open_grid).run()


def _kept(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(w for w in words if not w.startswith(_DROPPED_WORDS))


class _Host:
    """`at` builds what takes the place of the current instruction, `ways` are the blocks behind the first that this
    takes."""

    def __init__(self, module: Module, block: Block, function: Function, open_grid: bool) -> None:
        self.module = module
        self.open_grid = open_grid
        self.block = block
        self.function = function
        self.at = Builder(V.BasicBlock())
        self.ways: list[V.BasicBlock] = []

    def run(self) -> None:
        replaced: dict[V.Value, V.Value] = {}
        blocks: list[V.BasicBlock] = []
        for block in self.function.blocks:
            blocks.append(block)
            last, successors = block, tuple(block.successors)
            kept: list[I.Instruction] = []
            for instruction in block.instructions:
                instruction.records = ()
                self.at, self.ways = Builder(first := V.BasicBlock()), []
                value = self._rewritten(instruction)
                if value is not instruction:
                    for made in (first, *self.ways):
                        place(instruction, made.instructions)
                kept += first.instructions
                if self.ways:
                    for way in self.ways:
                        redirect_phis(way, first, last)
                    last.instructions, last = kept, self.ways[-1]
                    kept = last.instructions
                    blocks += self.ways
                if value is instruction:
                    kept.append(instruction)
                elif value is not None:
                    replaced[instruction] = value
            last.instructions = kept
            if last is not block:
                for successor in dict.fromkeys(successors):
                    redirect_phis(successor, block, last)
        self.function.blocks = blocks
        self.function.trailing_records = []
        replace_values(self.function, replaced)

    def _rewritten(self, instruction: I.Instruction) -> V.Value | None:
        """The value that takes the place of an instruction; itself if it stays, None if nothing does."""
        match instruction:
            case I.Fence():
                return None
            case I.Load() | I.Store():
                if "volatile" in instruction.flags:
                    Declarations(self.module).invoke(self.at, marks.STEP, T.VOID, words=marks.CONVERGENT)
                instruction.ordering = ""
                instruction.flags = tuple(f for f in instruction.flags if f != "atomic")
                return instruction
            case I.Call():
                return self._call(instruction)
            case _:
                return instruction

    # -- calls

    def _call(self, call: I.Call) -> V.Value | None:
        call.attributes = _kept(call.attributes)
        if isinstance(call.callee, V.InlineAsm):
            return self._statements(call, call.callee)
        name = callee_name(call)
        register = _REGISTER.match(name)
        if register:
            return self._register(call, register[1])
        if name == _GRID_SYNC:
            # Those of a block meet first, so that what looks at one block sees a barrier of it.
            self.at.call(marks.meeting(self.module, marks.MEET_BLOCK), [])
            return self.at.call(marks.meeting(self.module, marks.MEET_GRID), [])
        if name in _MEETINGS:
            return self._meet(call, *_MEETINGS[name])
        if name == "__je_lane":
            return self.at.call(marks.index(self.module, marks.LANE, 32), [])
        if name in _PLAIN_SHUFFLES or _SHUFFLES.match(name):
            return self._shuffle(call, name)
        if name.startswith(_NOTHING):
            return None
        if name == "vprintf":
            return self._print(call)
        found = library_call(self.module, self.at, call, name)
        if found is not None:
            return found
        defined = isinstance(call.callee, Function) and not call.callee.is_declaration
        if name == "cudaGetParameterBuffer":
            remedy = "launch it from a host function, which may be a kernel of ours too, or call a __device__ function"
            raise self._refused(call, "a launch by a kernel", remedy)
        if not defined and name.startswith(("llvm.nvvm.", "__nv_", "__je_")):
            barrier = _SUBSET_BARRIER.match(name)
            remedy = "a barrier of a whole block, __syncthreads(), has" if barrier else None
            raise self._refused(call, f"`{name}`", remedy)
        return call

    def _statements(self, call: I.Call, asm: V.InlineAsm) -> V.Value | None:
        def shuffled(mode: str, value: V.Value, offset: V.Value, clamp: V.Value) -> V.Value:
            return self._moved(value, self._source(mode, offset, clamp)[0])

        def shared(address: V.Value) -> V.Value:
            return self.at.call(marks.shared_address(self.module), [address])

        def register(name: str) -> V.Value:
            return self._register(call, name)

        try:
            made = ptx.Statements(self.module, self.at, register, shuffled, shared, self._where)
            return made.run(asm, call.arguments, call.type)
        except ptx.Unknown as unknown:
            raise self._refused(call, f"inline PTX `{unknown}`", "write it in C++, or run on a GPU") from None

    def _where(self, condition: V.Value, build: Callable[[], None]) -> tuple[V.BasicBlock, V.BasicBlock]:
        """Builds what is done where a condition holds; from where control comes then, and from where else."""
        before, then, after = self.at.block, V.BasicBlock(), V.BasicBlock()
        self.at.cond_br(condition, then, after)
        self.at.block = then
        build()
        self.at.br(after)
        self.at.block = after
        self.ways += [then, after]
        return then, before

    def _refused(self, call: I.Call, what: str, remedy: str | None) -> LoweringError:
        return LoweringError(f"{what} has no meaning on the CPU", location(self.module, call), remedy)

    def _register(self, call: I.Call, name: str) -> V.Value:
        kind, _, axis = name.partition(".")
        shape = self.block.shape
        extents = {"nctaid": shape.grid, "tid": shape.block, "ctaid": shape.grid}
        if kind == "ntid" and axis in marks.AXES:
            return self.block.extent(self.at, marks.AXES.index(axis))
        if kind in extents and axis in marks.AXES:
            extent = extents[kind][marks.AXES.index(axis)]
            if kind == "nctaid" and not self.open_grid:
                return const_int(T.I32, extent)
            return self.block.index(self.at, f"je.{kind}.{axis}", extent)
        match kind:
            case "laneid":
                return self.at.call(marks.index(self.module, marks.LANE, 32), [])
            case _ if kind in _LANE_MASKS:
                return self._lanes(*_LANE_MASKS[kind])
            case "warpid":
                return self.block.index(self.at, marks.WARP, self.block.most_warps)
            case "warpsize":
                return const_int(T.I32, 32)
            case "nwarpid":
                return self.block.warps(self.at)
            case "clock" | "clock64" | "globaltimer" | "smid" | "nsmid" | "gridid":
                return zero(call.type)
            case _:
                raise self._refused(call, f"the special register %{name}", None)

    def _lanes(self, below: bool, own: bool, above: bool) -> V.Value:
        """The bits of the lanes before this one, of its own and of those behind."""
        bit = self.at.binary("shl", const_int(T.I32, 1), self.at.call(marks.index(self.module, marks.LANE, 32), []))
        before = self.at.binary("sub", bit, const_int(T.I32, 1))
        behind = self.at.binary("xor", self.at.binary("or", before, bit), const_int(T.I32, -1))
        mask: V.Value = const_int(T.I32, 0)
        for wanted, lanes in ((below, before), (own, bit), (above, behind)):
            mask = self.at.binary("or", mask, lanes) if wanted else mask
        return mask

    def _meet(self, call: I.Call, group: str, vote: str) -> V.Value | None:
        name = callee_name(call)
        arguments = call.arguments
        if group == marks.MEET_BLOCK and not vote and arguments and V.int_value(arguments[0]) != 0:
            raise self._refused(call, "a named barrier", "barrier 0, __syncthreads(), is that of the whole block")
        if not vote:
            return self.at.call(marks.meeting(self.module, group), [])
        if name == "__je_active_mask":
            predicate: V.Value = const_int(T.I32, 1)
        else:
            predicate = arguments[-1]
            if predicate.type == T.I1:
                predicate = self.at.cast("zext", predicate, T.I32)
            else:
                predicate = self.at.cast("zext", self.at.icmp("ne", predicate, zero(predicate.type)), T.I32)
        made = self.at.call(marks.meeting(self.module, group, vote), [predicate])
        return made if call.type == T.I32 else self.at.icmp("ne", made, const_int(T.I32, 0))

    def _shuffle(self, call: I.Call, name: str) -> V.Value:
        match = _SHUFFLES.match(name)
        value, source = call.arguments[1], call.arguments[2]
        inside: V.Value = const_int(T.I1, 1)
        if match:
            source, inside = self._source(match[1], source, call.arguments[3])
        mark = marks.SHUFFLE
        if name in _SUMS:
            mark, source = marks.SHUFFLE_SUM, call.arguments[0]
        made = self._moved(value, source, mark)
        if not (match and match[3]):
            return made
        return self.at.pack(call.type, [made, inside])

    def _moved(self, value: V.Value, source: V.Value, mark: str = marks.SHUFFLE) -> V.Value:
        name, words = f"{mark}.{value.type}", ("convergent", "nounwind")
        return Declarations(self.module).invoke(self.at, name, value.type, [value, source], words)

    def _source(self, mode: str, offset: V.Value, clamp: V.Value) -> tuple[V.Value, V.Value]:
        lane = self.at.call(marks.index(self.module, marks.LANE, 32), [])
        return source_lane(self.at, mode, lane, offset, clamp)

    def _print(self, call: I.Call) -> V.Value:
        """`vprintf(format, packed arguments)` to `printf(format, arguments...)`."""
        format_, packed = call.arguments
        kind = T.FunctionType(T.I32, (T.PTR,), True)
        callee = declare(self.module, "printf", kind, ("nounwind",))
        values: list[V.Value] = []
        if isinstance(packed, I.Alloca):
            body = packed.allocated_type
            if isinstance(body, T.NamedStructType):
                body = self.module.struct_bodies[body.name] or T.StructType(())
            assert isinstance(body, T.StructType)
            for number, element in enumerate(body.elements):
                values.append(self.at.load(element, self.at.field(body, packed, number)))
        return self.at.call(callee, [format_, *values], kind)
