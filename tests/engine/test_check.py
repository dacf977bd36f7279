"""The structural check finds defects: each test breaks sound sweeps in one way, and the check says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jax_enzyme.ad.check.errors import EmissionError
from jax_enzyme.ad.check.shadows import check_shadows
from jax_enzyme.ad.plan.arms import Arms
from jax_enzyme.ad.plan.choices import ALL, Choices
from jax_enzyme.ad.plan.tape import Slot
from jax_enzyme.ad.reversal import Reversal, plan_reversal
from jax_enzyme.ad.sweeps import Sweeps
from jax_enzyme.ad.vjp import combined
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.derived import derived
from jax_enzyme.frontends import load
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Vjp
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.ir.values import BasicBlock, ConstantFloat, ConstantInt, Value
from jax_enzyme.rules.table import standard
from jax_enzyme.signature import Binding, parse

STATE = """
double f(int n, const double *x, double *y) {
    double s = 0.5;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            s = s * x[i] + y[j];
            y[j] = s * s;
        }
    return s;
}
"""
LIST = """
#include <stdlib.h>
struct node { double v; struct node *next; };
double f(int n, const double *x, double *y) {
    struct node *head = 0;
    for (int i = 0; i < n; i++) {
        struct node *k = malloc(sizeof *k);
        k->v = x[i] * y[i];
        k->next = head;
        head = k;
    }
    double s = 1;
    for (struct node *k = head; k; k = k->next) s *= k->v;
    while (head) {
        struct node *k = head->next;
        free(head);
        head = k;
    }
    return s;
}
"""
ARMS = """
#include <math.h>
double f(int n, const double *x, double *y) {
    double s = 0.5;
    for (int i = 0; i < n; i++) {
        if (x[i] > 0.7) s = sin(s * x[i]) * exp(-s);
        else s = log(1.5 + s * x[i]) / (1.1 + s) + y[i];
    }
    return s;
}
"""
RELOAD = """
double f(int n, const double *x, double *y) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i] * y[i];
    return s;
}
"""
REPEATED = """
double f(int n, const double *x, double *y) {
    double t = 0;
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < n; i++) {
            double a = 0;
            for (int j = 0; j < n; j++) a = a * x[i] + y[j] * y[j];
            t += a;
        }
        for (int j = 0; j < n; j++) y[j] = y[j] * t;
    }
    return t;
}
"""
COPIED = """
double f(int n, const double *x, double *y) {
    double next[16], s = 0;
    for (int t = 0; t < n; t++) {
        for (int i = 1; i < n - 1; i++) next[i] = x[i] * y[i - 1] * y[i] * y[i + 1];
        for (int i = 1; i < n - 1; i++) s += y[i] = next[i];
    }
    return s;
}
"""


def forget_plans() -> None:
    for name in ("_plan", "_survey"):
        plan_reversal.__globals__[name].cache_clear()


class Emitted:
    """The sweeps of a kernel, to be broken and then checked."""

    def __init__(self, source: str, choices: Choices = ALL) -> None:
        signature = parse("n: i32, x: f64[n], inout y: f64[n] -> f64")
        binding = Binding.of({"n": 11}, {})  # loops of so many are not unrolled
        self.base = canonical(derived(load(source, "f", "c"), signature, binding))
        forget_plans()  # what is broken here must not be found by others
        floats = [b.dtype == "f64" for b in self.base.buffers]
        wanted = tuple(f and b.is_input for f, b in zip(floats, self.base.buffers, strict=True))
        seeded = tuple(f and b.is_result for f, b in zip(floats, self.base.buffers, strict=True))
        self.reversal: Reversal = plan_reversal(self.base, Vjp(wanted, seeded), standard(), choices=choices)
        self.sweeps = Sweeps(self.reversal)
        self.forward = self.sweeps.forward
        self.reverse, _ = self.sweeps.reverse
        self.tape = self.reversal.root.plan.tape

    def check(self) -> None:
        self.sweeps.check()

    def fails(self, match: str) -> None:
        with pytest.raises(EmissionError, match=match):
            self.check()


@pytest.fixture(autouse=True)
def fresh_plans() -> Iterator[None]:
    yield
    forget_plans()


@pytest.fixture
def state() -> Emitted:
    return Emitted(STATE)


@pytest.fixture
def chain() -> Emitted:
    return Emitted(LIST)


def find(function: Function, chosen: Callable[[I.Instruction], bool]) -> tuple[BasicBlock, I.Instruction]:
    return next((b, i) for b in function.blocks for i in b.instructions if chosen(i))


def root(pointer: Value) -> Value:
    while isinstance(pointer, I.GetElementPtr):
        pointer = pointer.operands[0]
    return pointer


def writes_tape(emitted: Emitted) -> Callable[[I.Instruction], bool]:
    tape = emitted.forward.arguments[-2]
    return lambda i: isinstance(i, I.Store) and root(i.operands[1]) is tape and indexed(i.operands[1])


def reads_tape(emitted: Emitted) -> Callable[[I.Instruction], bool]:
    tape = emitted.reverse.arguments[-2]
    return lambda i: isinstance(i, I.Load) and root(i.operands[0]) is tape and indexed(i.operands[0])


def indexed(pointer: Value) -> bool:
    return isinstance(pointer, I.GetElementPtr) and isinstance(pointer.source_type, T.ArrayType)


def remove(block: BasicBlock, instruction: I.Instruction) -> None:
    block.instructions.remove(instruction)


@pytest.mark.parametrize("source", [STATE, LIST, ARMS, RELOAD, REPEATED])
def test_sound(source: str) -> None:
    Emitted(source).check()


def test_write_missing(state: Emitted) -> None:
    remove(*find(state.forward, writes_tape(state)))
    state.fails("never written")


def test_write_twice(state: Emitted) -> None:
    block, store = find(state.forward, writes_tape(state))
    block.instructions.insert(block.instructions.index(store), I.Store(T.VOID, "store", list(store.operands)))
    state.fails("written twice")


def test_write_in_another_block(state: Emitted) -> None:
    block, store = find(state.forward, writes_tape(state))
    remove(block, store)
    (end,) = [b for b in state.forward.blocks if isinstance(b.terminator, I.Return)]
    end.instructions.insert(len(end.instructions) - 1, store)
    state.fails("another block|other loops")


def test_write_at_constant_index(state: Emitted) -> None:
    _, store = find(state.forward, writes_tape(state))
    store.operands[1].operands[1] = ConstantInt(T.I64, 0)
    state.fails("index")


def test_write_at_loops_in_another_order(state: Emitted) -> None:
    _, store = find(state.forward, writes_tape(state))
    total = store.operands[1].operands[1]
    product = total.operands[0]
    product.operands[0], total.operands[1] = total.operands[1], product.operands[0]
    state.fails("other loops")


def test_write_with_other_extent(state: Emitted) -> None:
    _, store = find(state.forward, writes_tape(state))
    store.operands[1].operands[1].operands[0].operands[1] = ConstantInt(T.I64, 4)
    state.fails("array of its loops")


def test_read_elsewhere(state: Emitted) -> None:
    _, load_ = find(state.reverse, reads_tape(state))
    load_.operands[0].operands[0] = Builder(BasicBlock()).offset(state.reverse.arguments[-2], 4)
    state.fails("not that of an item")


def test_read_of_another_iteration(state: Emitted) -> None:
    _, load_ = find(state.reverse, reads_tape(state))
    load_.operands[0].operands[1].operands[1] = ConstantInt(T.I64, 1)
    state.fails("not the current iteration")


def test_read_with_loops_exchanged(state: Emitted) -> None:
    loads = [i for b in state.reverse.blocks for i in b.instructions if reads_tape(state)(i)]
    total = loads[0].operands[0].operands[1]
    outer, inner = total.operands[0].operands[0], total.operands[1]
    outer.operands[0], inner.operands[0] = inner.operands[0], outer.operands[0]
    if len(loads) > 1:
        state.fails("iteration of another loop")
    else:
        state.check()


def test_overlapping_slots(state: Emitted) -> None:
    key, slot = next(iter(state.tape.slots.items()))
    state.tape.slots["second"] = Slot(slot.frame, slot.offset + 8, slot.loops, slot.step, slot.type)
    assert key != "second"
    state.fails("overlaps")


def test_values_of_one_iteration_in_one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arms, "_met", lambda arms, loop: {b: 1 << arms._cfg.index[b] for b in loop.blocks})
    Emitted(ARMS).fails("two values of one iteration")


def test_another_value_is_read() -> None:
    arms = Emitted(ARMS)
    (reverse,) = arms.sweeps._reverse_of.values()
    slots = {load: arms.tape.slots[value] for load, value in reverse.kept.items()}
    pairs = ((a, b) for a in slots for b in slots if a.type == b.type and slots[a] is not slots[b])
    one, other = next(pairs)
    assert isinstance(one, I.Load) and isinstance(other, I.Load)
    one.operands[0] = other.operands[0]
    arms.fails("at the place of another value")


def test_slot_outside(state: Emitted) -> None:
    state.tape.root.size -= 8
    state.fails("leaves its frame")


def test_adjoint_not_started(state: Emitted) -> None:
    entry = state.reverse.entry
    store = next(i for i in entry.instructions if isinstance(i, I.Store) and T.is_float(i.operands[0].type))
    remove(entry, store)
    state.fails("start as zero|before it is set")


def test_adjoint_not_taken(state: Emitted) -> None:
    zeros = [
        (b, i)
        for b in state.reverse.blocks[1:]
        for i in b.instructions
        if isinstance(i, I.Store) and isinstance(i.operands[0], ConstantFloat) and isinstance(i.operands[1], I.Alloca)
    ]
    remove(*zeros[0])
    state.fails("neither taken nor added|read twice|overwritten")


def test_adjoint_overwritten(state: Emitted) -> None:
    def adds(i: I.Instruction) -> bool:
        value = i.operands[0] if isinstance(i, I.Store) else None
        return isinstance(value, I.BinaryOp) and value.opcode == "fadd" and isinstance(i.operands[1], I.Alloca)

    _, store = find(state.reverse, adds)
    store.operands[0] = store.operands[0].operands[1]
    state.fails("overwritten")


def test_iteration_not_set(state: Emitted) -> None:
    def sets(i: I.Instruction) -> bool:
        return isinstance(i, I.Store) and i.operands[0].type == T.I64 and not isinstance(i.operands[0], I.BinaryOp)

    remove(*find(state.reverse, sets))
    state.fails("before it is set")


@pytest.mark.parametrize(("source", "number"), [(STATE, 3), (RELOAD, 0), (RELOAD, 9)])
def test_loop_left_at_another_iteration(source: str, number: int) -> None:
    emitted = Emitted(source)
    _, test = find(emitted.reverse, lambda i: isinstance(i, I.Compare) and i.predicate == "eq")
    test.operands[1] = ConstantInt(T.I64, number)
    emitted.fails("left at another number than its last")


def test_loop_left_by_another_one(state: Emitted) -> None:
    first, second = [i for i in state.reverse.instructions() if isinstance(i, I.Compare) and i.predicate == "eq"]
    first.operands[0] = second.operands[0]
    state.fails("the number of another loop|two loops count|does not go on")


def test_control_that_skips(state: Emitted) -> None:
    headers = [b for b in state.reverse.blocks if isinstance(b.terminator, I.CondBranch)]
    first, second = headers[0].terminator.targets[0], headers[1].terminator.targets[1]
    first.terminator.targets[:] = [second.terminator.targets[0]]
    state.fails("control does not come from|before it is set|ends at")


def test_reload_of_overwritten_memory() -> None:
    emitted = Emitted(RELOAD)
    code = emitted.reversal.root.function
    (end,) = [b for b in code.blocks if isinstance(b.terminator, I.Return)]
    x = code.arguments[0]
    end.instructions.insert(len(end.instructions) - 1, I.Store(T.VOID, "store", [ConstantFloat(T.DOUBLE, "0.0"), x]))
    recipes = emitted.reversal.root.plan.recipes
    assert recipes.code.function is code
    emitted.fails("may have been overwritten")


def test_kept_once_though_written() -> None:
    emitted = Emitted(REPEATED, Choices(snapshots=False))
    (key, slot), *_ = ((k, s) for k, s in emitted.tape.slots.items() if s.repeated)
    assert isinstance(key, I.Load)
    (loop,) = slot.repeated
    block = loop.latches[0]
    block.instructions.insert(0, I.Store(T.VOID, "store", [ConstantFloat(T.DOUBLE, "0.0"), key.operands[0]]))
    emitted.fails("kept once though it may differ")


def test_kept_once_though_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax_enzyme.ad.plan.recipes.is_repeated", lambda *_: True)
    Emitted(REPEATED.replace("y[j] * y[j];\n            t", "y[i] * y[(i + j) % n];\n            t")).fails(
        "may differ"
    )


def test_copied_elsewhere() -> None:
    emitted = Emitted(COPIED)
    block, call = find(emitted.forward, lambda i: callee_name(i).startswith("llvm.memcpy"))
    call.operands[2] = ConstantInt(T.I64, 8)
    emitted.fails("not as much of it as is kept")
    remove(block, call)
    emitted.fails("never written")


def test_copied_though_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax_enzyme.analysis.alias.Alias.finds", lambda *_: True)
    Emitted(COPIED).fails("from a copy that may be another by then")


def test_pointers_and_noalias(chain: Emitted) -> None:
    for argument in chain.reverse.arguments:
        argument.attributes = ("noalias",)
    chain.fails("noalias")


def test_node_from_elsewhere(chain: Emitted) -> None:
    def steps_back(i: I.Instruction) -> bool:
        value = i.operands[0] if isinstance(i, I.Store) else None
        return isinstance(value, I.Load) and isinstance(value.operands[0], I.Load) and T.is_pointer(value.type)

    _, store = find(chain.reverse, steps_back)
    store.operands[0] = store.operands[0].operands[0].operands[0]
    chain.fails("taken from elsewhere")


def test_shadow_not_zero(state: Emitted) -> None:
    function = combined(Sweeps(state.reversal))
    target = function.module.functions[function.symbol]
    call = next(i for i in target.instructions() if isinstance(i, I.Call) and i.callee.name.endswith(".reverse"))
    count = len(state.base.buffers)
    shadows = len(state.reversal.shadow_objects)
    check_shadows(target, call.callee, count, shadows)
    made = Builder(BasicBlock()).alloca(T.ArrayType(88, T.I8))
    target.entry.instructions.insert(0, made)
    call.operands[count] = made
    with pytest.raises(EmissionError, match="not zero"):
        check_shadows(target, call.callee, count, shadows)
