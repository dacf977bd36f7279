"""The entry wrapper: what the foreign-function handler calls, one loop over the batch around an array function.

    before                                     after
    define i64 @f(ptr noalias %x, ...)         define internal i64 @f(ptr noalias %x, ...) noinline
                                               define i64 @je.entry(ptr %buffers, ptr %strides, i64 %lo, i64 %hi,
                                                                    ptr %team)

`je.entry` is the contract of `csrc/abi.h`: for every b in [lo, hi) it points buffer i at `buffers[i] + b * strides[i]`,
fills the buffers that ask for it with zeros, calls the array function, and stops at the first status that is not 0,
which it returns with b - lo in its highest bits.
An array function whose loops several threads may share (`transform.shared_loops`) is handed the team as well.
A reverse sweep without masks (`transform.unmasked`) may run once more with them (`codegen.again`).
With hi = -1 it runs nothing, and returns the address of the text that failure number `lo` has, or 0; with hi = -2 it
returns how many threads may run it, or 0 for all; negative, if only its loops, and batch elements one after the other.

The array function is kept out of line. Inlined, its `noalias` parameters become alias scopes that every later pass has
to carry through the batch loop; out of line they hold by construction, and the call costs two nanoseconds.
"""

from __future__ import annotations

from jax_enzyme.codegen.again import Again
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.inlining import without_attributes
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantAggregate, ConstantString, Value, int_value
from jax_enzyme.transform.failure_sites import FIRST_MESSAGE, OUT_OF_MEMORY, messages
from jax_enzyme.transform.shared_copies import clear

ENTRY = "je.entry"
INITIALISER = "je.initialise"
_CONSTRUCTORS = "llvm.global_ctors"
_ELEMENT_SHIFT = 40
_MANY_ELEMENTS = 0xFFFFFF
"""Where a status says which batch element failed, and from which on it does not."""

_LINKAGE = {
    "private", "internal", "available_externally", "linkonce", "linkonce_odr", "weak", "weak_odr", "common", "external",
    "extern_weak", "dso_local", "dso_preemptable", "default", "hidden", "protected", "dllimport", "dllexport",
}  # fmt: skip


def add_entry(
    module: Module,
    symbol: str,
    buffers: tuple[Buffer, ...],
    threads: int | None = None,
    ending: Function | None = None,
    *,
    careful: tuple[Buffer, ...] | None = None,
) -> None:
    """Defines `je.entry` for an array function in a private module, and makes all else internal to it. `threads`: what
    it returns of them. `ending` is called where the function fails, with the number of the failure and the address of
    its text, or 0. `careful`: the buffers of `je.careful` of another module, which is called where results are no
    numbers."""
    make_internal(module)
    kernel = module.functions[symbol]
    rest = without_attributes(module, kernel.attributes, frozenset({"alwaysinline", "noinline"}))
    kernel.attributes = (*rest, "noinline")
    module.functions[ENTRY] = _entry(module, kernel, buffers, _texts(module), threads or 0, ending, careful)


def make_internal(module: Module) -> None:
    """Nothing that a module defines is seen outside of it, in place."""
    for function in module.functions.values():
        if not function.is_declaration:
            function.prefix = _internal_words(function.prefix)
            function.attributes = _without_comdat(function.attributes)
    for name, variable in module.globals.items():
        if variable.initializer is not None and not name.startswith("llvm."):
            variable.prefix = _internal_words(variable.prefix)
            variable.suffix = _without_comdat(variable.suffix)


def add_initialiser(module: Module) -> bool:
    """Defines `je.initialise` in a private module, which runs the constructors of its globals in order; False where it
    has none. The linker of this process runs none by itself. Destructors never run: code stays loaded to the end."""
    module.globals.pop("llvm.global_dtors", None)
    constructors = module.globals.pop(_CONSTRUCTORS, None)
    if constructors is None or not isinstance(constructors.initializer, ConstantAggregate):
        return False
    rows = [row.elements for row in constructors.initializer.elements if isinstance(row, ConstantAggregate)]
    rows.sort(key=lambda row: int_value(row[0]) or 0)
    block = BasicBlock(name="start")
    at = Builder(block)
    kind = T.FunctionType(T.VOID, ())
    for row in rows:
        at.call(row[1], [], kind)
    at.ret()
    module.functions[INITIALISER] = Function(T.PTR, kind, [], [block], attributes=("uwtable",), name=INITIALISER)
    return True


def _internal_words(prefix: tuple[str, ...]) -> tuple[str, ...]:
    return ("internal", *(w for w in prefix if w not in _LINKAGE))


def _without_comdat(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(w for w in words if not w.startswith("comdat"))


def _answer(question: BasicBlock, number: Value, texts: tuple[GlobalVariable, ...]) -> list[BasicBlock]:
    """Returns the address of the text of failure `number`, 0 where there is none."""
    blocks = [question]
    unknown = BasicBlock(name="unknown")
    Builder(unknown).ret(const_int(T.I64, 0))
    branch = I.Switch(T.VOID, "switch", [number], targets=[unknown])
    Builder(question).insert(branch)
    for index, text in enumerate(texts):
        known = BasicBlock(name=f"text{index}")
        at = Builder(known)
        at.ret(at.cast("ptrtoint", text, T.I64))
        branch.add(const_int(T.I64, FIRST_MESSAGE + index), known)
        blocks.append(known)
    return [*blocks, unknown]


def _texts(module: Module) -> tuple[GlobalVariable, ...]:
    """The texts of the failures that the module knows, as C strings."""
    found: list[GlobalVariable] = []
    for index, text in enumerate(messages(module)):
        data = text.encode() + b"\0"
        type_ = T.ArrayType(len(data), T.I8)
        words = ("private", "unnamed_addr")
        found.append(GlobalVariable(T.PTR, type_, ConstantString(type_, data), True, words, name=f"je.text.{index}"))
        module.globals[found[-1].name] = found[-1]
    return tuple(found)


def _entry(
    module: Module,
    kernel: Function,
    buffers: tuple[Buffer, ...],
    texts: tuple[GlobalVariable, ...],
    threads: int,
    ending: Function | None,
    careful_buffers: tuple[Buffer, ...] | None,
) -> Function:
    pointers, strides, low, high, team = arguments = [
        Argument(T.PTR, ("noalias", "readonly"), 0, name="buffers"),
        Argument(T.PTR, ("noalias", "readonly"), 1, name="strides"),
        Argument(T.I64, (), 2, name="lo"),
        Argument(T.I64, (), 3, name="hi"),
        Argument(T.PTR, (), 4, name="team"),
    ]
    names = ("ask", "start", "body", "step", "failed", "done")
    ask, start, body, step, failed, done = blocks = [BasicBlock(name=n) for n in names]
    look, careful = more = [BasicBlock(name=n) for n in ("look", "careful")]
    blocks += [] if careful_buffers is None else more

    at = Builder(ask)
    question = BasicBlock(name="question")
    counted, other = BasicBlock(name="counted"), BasicBlock(name="other")
    at.cond_br(at.icmp("eq", high, const_int(T.I64, -1)), question, other)
    at = Builder(other)
    at.cond_br(at.icmp("eq", high, const_int(T.I64, -2)), counted, start)
    Builder(counted).ret(const_int(T.I64, threads))
    blocks += [*_answer(question, low, texts), other, counted]

    at = Builder(start)
    bases = [at.load(T.PTR, at.offset(pointers, 8 * i), 8) for i in range(len(buffers))]
    steps = [at.load(T.I64, at.offset(strides, 8 * i), 8) for i in range(len(buffers))]
    again = None if careful_buffers is None else Again(module, buffers, careful_buffers, at)
    ends: list[tuple[Value, BasicBlock]] = []
    missing = None if again is None else again.is_missing(at)
    if missing is not None:
        enough = BasicBlock(name="enough")
        at.cond_br(missing, failed, enough)
        ends.append((const_int(T.I64, OUT_OF_MEMORY << 32), start))
        start = enough
        at = Builder(start)
        blocks.append(start)
    at.cond_br(at.icmp("slt", low, high), body, done)

    at = Builder(body)
    number = at.phi(T.I64, [(low, start)])
    number.name = "b"
    shares = len(kernel.arguments) > len(buffers)
    places = zip(bases, steps, strict=True)
    operands: list[Value] = [at.gep(T.I8, base, [at.binary("mul", number, stride)]) for base, stride in places]

    def clear_all(buffers: tuple[Buffer, ...]) -> None:
        for buffer, pointer in zip(buffers, operands, strict=True):
            if buffer.zero and buffer.nbytes:
                clear(module, at, team if shares else None, pointer, buffer.nbytes)

    clear_all(buffers)
    if again is not None:
        again.save(at, operands)
    status = at.call(kernel, [*operands, team] if shares else operands)
    ends.append((status, body))
    at.cond_br(at.icmp("ne", status, const_int(T.I64, 0)), failed, step if again is None else look)
    if again is not None:
        at = Builder(look)
        at.cond_br(again.is_needed(at, operands), careful, step)
        at = Builder(careful)
        clear_all(again.careful)
        ends.append((at.call(again.function, again.restored(at, operands)), careful))
        at.cond_br(at.icmp("ne", ends[-1][0], const_int(T.I64, 0)), failed, step)

    at = Builder(step)
    following = at.binary("add", number, const_int(T.I64, 1), ("nsw",))
    number.add(following, step)
    at.cond_br(at.icmp("slt", following, high), body, done)

    kind = T.FunctionType(T.I64, (T.PTR, T.PTR, T.I64, T.I64, T.PTR))
    entry = Function(T.PTR, kind, arguments, blocks, attributes=("uwtable",), name=ENTRY)
    at = Builder(failed)
    status = status if len(ends) == 1 else at.phi(T.I64, ends)
    begun = [(number if block in (body, careful) else low, block) for _, block in ends]
    reached = number if missing is None else at.phi(T.I64, begun)
    if again is not None:
        again.end(at)
    if ending is not None:
        cause = at.binary("and", status, const_int(T.I64, 0xFFFFFFFF))
        text = at.call(entry, [pointers, strides, cause, const_int(T.I64, -1), team])
        at.call(ending, [cause, text])
    behind = at.binary("sub", reached, low)
    last = const_int(T.I64, _MANY_ELEMENTS)
    behind = at.least(behind, last)
    at.ret(at.binary("or", status, at.binary("shl", behind, const_int(T.I64, _ELEMENT_SHIFT))))

    at = Builder(done)
    if again is not None:
        again.end(at)
    at.ret(const_int(T.I64, 0))
    return entry
