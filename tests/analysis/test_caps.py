"""At each limit of an analysis, and beyond it, what it says still includes what is so."""

from __future__ import annotations

from jax_enzyme.ad.device.lanes import Lanes
from jax_enzyme.ad.device.warps import Warps
from jax_enzyme.analysis import guards
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.byte_ranges import ByteRanges
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.congruence import MANY, Congruence
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.guards import Guards
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.number_bytes import NumberBytes
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.rules.table import standard
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.device.registers import REGISTER
from jax_enzyme.transform.reducible import make_reducible

DECLARED = """
declare ptr @malloc(i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def module_of(body: str, parameters: str = "i64 %n, ptr %x") -> Module:
    return parse(f"define void @f({parameters}) {{\n{body}\n}}\n{DECLARED}")


def function_of(module: Module) -> Function:
    return module.functions["f"]


def named(module: Module, name: str) -> I.Instruction:
    return next(i for i in function_of(module).instructions() if i.name == name)


def holds(congruence: Congruence, number: int) -> bool:
    away = number - congruence.offset
    return away == 0 if congruence.modulus == 0 else away % congruence.modulus == 0


def test_places_of_a_pointer_that_is_moved_often() -> None:
    body = ["%a = call ptr @malloc(i64 %n)"]
    for i in range(30):
        before = "%a" if i == 0 else f"%p{i - 1}"
        body += [f"%c{i} = icmp eq i64 %n, {i}", f"%m{i} = getelementptr i8, ptr {before}, i64 {8 * i + 8}"]
        body += [f"%p{i} = select i1 %c{i}, ptr %m{i}, ptr {before}"]
    module = module_of("\n".join([*body, "ret void"]))
    found = PointsTo(module, function_of(module)).within(named(module, "p29"))
    (offsets,) = found.values()
    assert all(any(holds(c, 8 * i + 8) for c in offsets) for i in range(-1, 30))


def test_pointers_in_many_places() -> None:
    """More of them than places are told apart, for `Places` as for the points-to relation itself."""
    body = ["%r = call ptr @malloc(i64 %n)"]
    for i in range(MANY + 10):
        body += [f"%o{i} = call ptr @malloc(i64 8)", f"%e{i} = getelementptr i8, ptr %o{i}, i64 {i % 8}"]
        body += [f"%s{i} = getelementptr i8, ptr %r, i64 {24 * i}", f"store ptr %e{i}, ptr %s{i}"]
    body += [f"%l{i} = load ptr, ptr %s{i}" for i in range(MANY + 10)]
    module = module_of("\n".join([*body, "ret void"]))
    points_to = PointsTo(module, function_of(module))
    for i in range(MANY + 10):
        item, load = points_to.objects[named(module, f"o{i}")], named(module, f"l{i}")
        assert item in points_to.of(load)
        assert any(holds(c, i % 8) for c in points_to.within(load)[item])


def test_what_is_read_anywhere_among_pointers_in_many_places() -> None:
    body = ["%r = call ptr @malloc(i64 %n)", "%o = call ptr @malloc(i64 %n)"]
    for i in range(MANY + 10):
        body += [f"%e{i} = getelementptr i8, ptr %o, i64 {8 * (i // 16)}"]
        body += [f"%s{i} = getelementptr i8, ptr %r, i64 {24 * i}", f"store ptr %e{i}, ptr %s{i}"]
    body += ["%at = getelementptr ptr, ptr %r, i64 %n", "%l = load ptr, ptr %at", "ret void"]
    module = module_of("\n".join(body))
    (offsets,) = PointsTo(module, function_of(module)).within(named(module, "l")).values()
    assert all(any(holds(c, 8 * (i // 16)) for c in offsets) for i in range(MANY + 10))


MOVED = """
  %a = call ptr @malloc(i64 %n)
  %b = call ptr @malloc(i64 %n)
  %d = load double, ptr %x
  %k = fptosi double %d to i64
  store double %d, ptr %a
  br label %loop

loop:
  %next = getelementptr i8, ptr %a, i64 24
  call void @llvm.memmove.p0.p0.i64(ptr %next, ptr %a, i64 %n, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %b, ptr %next, i64 %n, i1 false)
  %more = icmp eq i64 %n, 9
  br i1 %more, label %loop, label %out

out:
  %far.at = getelementptr i8, ptr %b, i64 12000
  %far = load i64, ptr %far.at
  %beside.at = getelementptr i8, ptr %b, i64 12008
  %beside = load i64, ptr %beside.at
  ret void
"""


def test_numbers_that_are_copied_around_a_cycle() -> None:
    """They may come wherever the cycle takes them, and nowhere else."""
    module = module_of(MOVED)
    points_to = PointsTo(module, function_of(module))
    numbers = NumberBytes(points_to, frozenset(), id, lambda _: lambda *_: False, ())
    store = next(i for i in function_of(module).instructions() if isinstance(i, I.Store))
    numbers.stored(store, store.operands[0])
    copies = [i for i in function_of(module).instructions() if isinstance(i, I.CallBase) and len(i.arguments) == 4]
    rounds = 0
    while any([numbers.copied(c) for c in copies]):
        rounds += 1
    assert rounds < 2 * MANY
    assert numbers.may_be_read(named(module, "far"))
    assert not numbers.may_be_read(named(module, "beside"))


def test_all_lanes_of_a_long_vector_are_numbers() -> None:
    module = module_of("%v = load <96 x double>, ptr %x\nret void")
    load = named(module, "v")
    parts = [p for _, p in ByteRanges(PointsTo(module, function_of(module))).accessed(load)]
    assert sorted(p.at.offset for p in parts) == [8 * i for i in range(96)]
    assert {p.size for p in parts} == {8}


def test_facts_about_many_places() -> None:
    body = ["%a = call ptr @malloc(i64 %n)", "%b = call ptr @malloc(i64 %n)"]
    for i in range(MANY + 10):
        body += [f"%s{i} = getelementptr i8, ptr %a, i64 {16 * i}", f"store double 0.0, ptr %s{i}"]
        body += [f"%t{i} = getelementptr i8, ptr %b, i64 {16 * i}"]
    body += ["call void @llvm.memmove.p0.p0.i64(ptr %b, ptr %a, i64 %n, i1 false)", "ret void"]
    module = module_of("\n".join(body))
    words = Words(PointsTo(module, function_of(module)), {})
    for i in range(MANY + 10):
        assert (0, T.DOUBLE) in (words.numbers(named(module, f"t{i}"), 8) or ())


def test_parts_of_an_object_that_outputs_depend_on() -> None:
    """More of them than are told apart: the sum of 100 numbers that lie between others."""
    body = ["%m = alloca [1600 x i8]", "%v = load double, ptr %x", "%s0 = fmul double %v, 2.0"]
    for i in range(100):
        body += [f"%a{i} = fmul double %v, {i}.5", f"%p{i} = getelementptr i8, ptr %m, i64 {16 * i}"]
        body += [f"store double %a{i}, ptr %p{i}"]
    for i in range(100):
        body += [f"%l{i} = load double, ptr %p{i}", f"%s{i + 1} = fadd double %s{i}, %l{i}"]
    module = module_of("\n".join([*body, "store double %s100, ptr %x", "ret void"]))
    points_to = PointsTo(module, function_of(module))
    x = points_to.objects[function_of(module).arguments[1]]
    activity = Activity(points_to, standard(), [x], [x])
    assert all(activity.value(named(module, f"a{i}")) for i in range(100))


def test_conditions_of_many_branches() -> None:
    """The nearest are kept, and each holds."""
    count = guards.MAX_CONDITIONS + 6
    body = ["br label %b0"]
    for i in range(count):
        body += [f"b{i}:", f"%c{i} = icmp sgt i64 %n, {i}", f"br i1 %c{i}, label %b{i + 1}, label %out"]
    module = module_of("\n".join([*body, f"b{count}:", "br label %out", "out:", "ret void"]))
    function = function_of(module)
    cfg = Cfg(function)
    last = next(b for b in function.blocks if b.name == f"b{count}")
    found = Guards(cfg, Dominators(cfg)).at(last)
    assert [c.block.name for c in found] == [f"b{i}" for i in reversed(range(6, count))]
    assert {c.predicate for c in found} == {"sgt"}


def test_loops_with_two_entries_however_many() -> None:
    count, body = 104, ["br label %n0"]
    for i in range(count):
        body += [f"n{i}:", f"%c{i} = icmp eq i64 %n, {i}", f"br i1 %c{i}, label %a{i}, label %b{i}"]
        body += [f"a{i}:", f"br label %b{i}"]
        body += [f"b{i}:", f"%d{i} = icmp eq i64 %n, {i + 7}", f"br i1 %d{i}, label %a{i}, label %n{i + 1}"]
    module = make_reducible(module_of("\n".join([*body, f"n{count}:", "ret void"])))
    assert make_reducible(module) is module


def test_what_threads_compute_in_many_steps() -> None:
    """Beyond the limit nothing is known of a value, also where it is the same for all."""
    for count, is_known in ((10, True), (160, False)):
        steps = "\n".join(f"%v{i} = add i32 {'%t' if i == 0 else f'%v{i - 1}'}, 1" for i in range(count))
        text = f"define void @f(i32 %same) {{\n%t = call i32 @{REGISTER}tid.x()\n{steps}\nret void\n}}\n"
        module = parse(text + f"declare i32 @{REGISTER}tid.x()\n")
        found = Lanes(Shape((1, 1, 1), (32, 1, 1), 0)).of(named(module, f"v{count - 1}"))
        assert found == ([t + count for t in range(32)] if is_known else None)
        module = parse(text.replace("%t,", "%same,") + f"declare i32 @{REGISTER}tid.x()\n")
        warps = Warps(Lanes(Shape((1, 1, 1), (32, 1, 1), 0)), lambda load: True)
        assert warps.agree(named(module, f"v{count - 1}")) is is_known
