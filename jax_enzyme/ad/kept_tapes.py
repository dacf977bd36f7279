"""Both sweeps as two functions where the tape has no static size: the process keeps it, and a handle crosses JAX.

    before    i64 vjp(buffers..., shadows...)             both sweeps, for a kernel that has run before
    after     i64 augmented(buffers..., out handle)       the kernel, and a tape that `csrc/kept_tapes.cc` takes over
              i64 pullback(inputs..., handle, shadows...) the reverse sweep; where the tape is gone, the forward sweep
                                                          again before it

The root frame, and what reverse reads of buffers that the kernel writes, are the first block of the tape's arena. Both
functions call one forward sweep, which is not inlined: what is on the tape does not depend on who made it.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from jax_enzyme.ad.check.shadows import check_shadows
from jax_enzyme.ad.emit.addresses import holds_address
from jax_enzyme.ad.emit.runtime import ARENA
from jax_enzyme.ad.facts.copying import ALIGNMENT, array_function, whole
from jax_enzyme.ad.facts.functions import ALONE
from jax_enzyme.ad.facts.reruns import hindrances
from jax_enzyme.ad.frame import Frame
from jax_enzyme.ad.plan.shared_tapes import mark_residents
from jax_enzyme.ad.plan.tape import Slot, Tape
from jax_enzyme.ad.reversal import Reversal
from jax_enzyme.ad.sweeps import Sweeps
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer, Io, shadow_buffers, vjp_buffers
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.options import Options
from jax_enzyme.rules.mpi.table import is_mpi
from jax_enzyme.rules.user import rules_of
from jax_enzyme.transform.output import drop_output

_HANDLE_BYTES = 16
_NULL = ConstantNull(T.PTR)


def keeps_tape(reversal: Reversal, options: Options) -> bool:
    """Whether the process can keep the tape between the sweeps. It holds no address that means something in one call
    alone; and running the forward sweep again, or not, changes nothing but time: it prints nothing, sends no messages
    that other processes wait for, and finds what it found. Checks (`sanitize`) see one function."""
    if options.sanitize or reversal.carries_shadows or reversal.facts.execution is not ALONE:
        return False
    plan, points_to = reversal.root.plan, reversal.facts.points_to
    if any(_is_of_one_call(plan.tape, key, slot) for key, slot in plan.tape.slots.items()):
        return False
    if any(points_to.contents[item] for item in plan.residents):
        return False
    module = reversal.base.module
    if any(map(is_mpi, module.functions)) or drop_output(module) is not module:
        return False
    return not any(hindrances(reversal.base, reversal.step, rules_of(module)))


def _is_of_one_call(tape: Tape, key: object, slot: Slot) -> bool:
    """Whether a slot may hold an address other than that of a node, or what may be one."""
    if isinstance(key, tuple) or not holds_address(tape.layout, slot.type):
        return False
    return slot.type != T.I64 or slot.may_be_bits


def kept_augmented(sweeps: Sweeps) -> ArrayFunction:
    """The kernel, which leaves a tape with the process, and its handle in a buffer."""
    reversal, base = sweeps.reversal, sweeps.reversal.base
    own = tuple(replace(buffer, role="primal", of=index) for index, buffer in enumerate(base.buffers))
    buffers = (*own, _handle("out"))
    target = array_function(f"{base.symbol}.augmented", buffers)
    entry, done, failed = (BasicBlock(name=name) for name in ("entry", "done", "failed"))
    target.blocks = [entry, done, failed]
    at = Builder(entry)
    _call(sweeps, at, "begin")
    arena, root = _arena(at), at.alloca(T.PTR)
    status = at.call(_forward_sweep(sweeps), [*target.arguments[: len(own)], arena, root])
    at.cond_br(at.icmp("eq", status, zero(T.I64)), done, failed)

    at = Builder(done)
    _call(sweeps, at, "keep", target.arguments[-1], _layout(reversal), at.load(T.PTR, root), at.load(T.PTR, arena))
    at.ret(zero(T.I64))

    at = Builder(failed)
    at.call(sweeps.runtime.arena("release"), [arena])
    at.ret(status)
    return sweeps.delivered(target, buffers)


def kept_pullback(sweeps: Sweeps) -> ArrayFunction:
    """The reverse sweep over a tape that the process has kept; if it has not, behind the forward sweep."""
    reversal, base = sweeps.reversal, sweeps.reversal.base
    backward, used = sweeps.reverse
    count = len(base.buffers)
    own = tuple(
        replace(buffer, role="initial") if buffer.is_input else buffer
        for buffer in vjp_buffers(base.buffers, reversal.step)[:count]
    )
    buffers = (*own, _handle("in"), *shadow_buffers(base.buffers, reversal.step))
    target = array_function(f"{base.symbol}.pullback", buffers)
    frame = Frame(sweeps, target, count + 1, buffers)
    handle = target.arguments[count]
    given = target.arguments[:count]

    at = frame.builder
    entry = at.block
    again, made, failed, back, kept, let_go, end = (
        BasicBlock(name=name) for name in ("again", "made", "failed", "back", "kept", "let_go", "end")
    )
    shadows = frame.shadows()
    arena, place = _arena(at), at.alloca(T.PTR)
    found = _call(sweeps, at, "borrow", handle, _layout(reversal))
    gone = at.icmp("eq", found, _NULL)
    at.cond_br(gone, again, back)

    at = Builder(again)
    status = at.call(_forward_sweep(sweeps), [*given, arena, place])
    at.cond_br(at.icmp("eq", status, zero(T.I64)), made, failed)
    at = Builder(made)
    fresh = at.load(T.PTR, place)
    at.br(back)

    at = Builder(back)
    root = at.phi(T.PTR, [(found, entry), (fresh, made)])
    copies = _copies(sweeps)
    arguments = reversal.root.function.arguments
    read = [_read(at, root, copies, i, given[i]) if a in used else _NULL for i, a in enumerate(arguments)]
    at.call(backward, [*read, *shadows, root, _NULL])
    at.cond_br(gone, let_go, kept)
    at = Builder(kept)
    _call(sweeps, at, "return", handle)
    at.br(end)
    for block, after in ((let_go, end), (failed, end)):
        at = Builder(block)
        at.call(sweeps.runtime.arena("release"), [arena])
        at.br(after)

    frame.builder = Builder(end)
    success = zero(T.I64)
    frame.finish(frame.builder.phi(T.I64, [(success, kept), (success, let_go), (status, failed)]))
    target.blocks = [entry, again, made, back, kept, let_go, failed, end]
    check_shadows(target, backward, count, len(shadows))
    return sweeps.delivered(target, buffers)


def _read(at: Builder, root: Value, copies: dict[int, int], index: int, given: Value) -> Value:
    """Where the reverse sweep reads a buffer: what the kernel has left in it is beside the root frame."""
    return at.offset(root, copies[index]) if index in copies else given


def _handle(io: Io) -> Buffer:
    return Buffer("tape", "u8", (_HANDLE_BYTES,), io, "tape")


def _arena(at: Builder) -> Value:
    arena = at.alloca(ARENA, align=16)
    at.store(zero(ARENA), arena)
    return arena


def _forward_sweep(sweeps: Sweeps) -> Function:
    """`i64 f(buffers..., arena, place)`: the forward sweep, which leaves the address of its root frame in `place`."""
    base = sweeps.reversal.base
    count = len(base.buffers)
    target = sweeps.function(
        f"{base.symbol}.kept", T.I64, [T.PTR] * (count + 2), ("noalias",), ("noinline", "nounwind")
    )
    own, (arena, place) = target.arguments[:count], target.arguments[count:]
    at = Builder(BasicBlock(name="entry"))
    target.blocks = [at.block]
    copies = _copies(sweeps)
    size = sum(whole(base.buffers[i].nbytes) for i in copies) + _root_bytes(sweeps.reversal)
    root = at.call(sweeps.runtime.arena("allocate"), [arena, const_int(T.I64, max(size, ALIGNMENT))])
    mark_residents(sweeps.reversal.root.plan, root)
    shadows = [_NULL for _ in sweeps.reversal.shadow_objects]
    status = at.call(sweeps.forward, [*own, *shadows, root, arena])
    for index, offset in copies.items():
        sweeps.runtime.copy(at, at.offset(root, offset), own[index], base.buffers[index].nbytes)
    at.store(root, place)
    at.ret(status)
    return target


def _copies(sweeps: Sweeps) -> dict[int, int]:
    """Of each buffer that the kernel writes and the reverse sweep reads, where it lies behind the root frame."""
    _, used = sweeps.reverse
    base, found = sweeps.reversal.base, dict[int, int]()
    offset = _root_bytes(sweeps.reversal)
    for index, (argument, buffer) in enumerate(zip(sweeps.reversal.root.function.arguments, base.buffers, strict=True)):
        if argument in used and buffer.io != "in":
            found[index] = offset
            offset += whole(buffer.nbytes)
    return found


def _root_bytes(reversal: Reversal) -> int:
    return whole(reversal.root.plan.tape.root.size)


def _layout(reversal: Reversal) -> Value:
    """A number for what lies where on the tape: a pullback reads no other."""
    tape = reversal.root.plan.tape
    slots = [f"{s.type} {s.offset} {s.step} {[n for _, n in s.loops]} {s.frame.size}" for s in tape.slots.values()]
    text = repr((reversal.base.symbol, reversal.base.buffers, reversal.step.wanted, reversal.step.seeded, slots))
    return const_int(T.I64, int.from_bytes(sha256(text.encode()).digest()[:8], "little"))


def _call(sweeps: Sweeps, at: Builder, name: str, *arguments: Value) -> Value:
    """Calls a function of `csrc/kept_tapes.cc`."""
    result = T.PTR if name == "borrow" else T.VOID
    return sweeps.runtime.declarations.invoke(at, f"je_tape_{name}", result, arguments, ("nounwind",))
