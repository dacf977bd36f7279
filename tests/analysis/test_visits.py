"""Analyses and passes visit instructions in proportion to the program: counted, on programs twice as long."""

from __future__ import annotations

from typing import Any

import pytest

from jax_enzyme.ad.derive import derive
from jax_enzyme.ad.shortcuts import general
from jax_enzyme.analysis import digits, escaped, memory, single_values, words
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.congruence import ANY, Congruence
from jax_enzyme.analysis.consequences import Consequences
from jax_enzyme.analysis.dependence import Worklist
from jax_enzyme.analysis.equality import exact_comparisons
from jax_enzyme.analysis.evaluation import Effort
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.object_bytes import Copied
from jax_enzyme.analysis.offsets import merge
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.shortcuts import Shortcuts
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer, Vjp
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.options import Options
from jax_enzyme.rules.table import standard
from jax_enzyme.transform import retype

RECORD = """
  %r{i} = call ptr @malloc(i64 16)
  store double %s{i}, ptr %r{i}
  %n{i} = getelementptr i8, ptr %r{i}, i64 8
  store ptr %r{b}, ptr %n{i}
  %v{i} = load double, ptr %r{i}
  %s{a} = fmul double %v{i}, %v{i}
"""
LIST = """
declare ptr @malloc(i64)
define void @f(ptr noalias %x, ptr noalias %y) {{
entry:
  %s1 = load double, ptr %x
  %r0 = call ptr @malloc(i64 16)
{records}
  br label %loop
loop:
  %p = phi ptr [ %r{last}, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %more, %loop ]
  %v = load double, ptr %p
  %more = fadd double %sum, %v
  %at = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %at
  %end = icmp eq ptr %next, %r0
  br i1 %end, label %exit, label %loop
exit:
  store double %more, ptr %y
  ret void
}}
"""


def records(count: int) -> Module:
    text = "".join(RECORD.format(i=i, a=i + 1, b=i - 1) for i in range(1, count + 1))
    return parse(LIST.format(records=text, last=count))


def visits(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    made: list[Worklist[object]] = []
    run = Worklist[object].run

    def noted(self: Worklist[object]) -> None:
        made.append(self)
        run(self)

    monkeypatch.setattr(Worklist, "run", noted)
    module = records(count)
    function = module.functions["f"]
    points_to = PointsTo(module, function)
    x, y = (points_to.objects[a] for a in function.arguments)
    activity = Activity(points_to, standard(), [x], [y])
    products = [i for i in function.instructions() if i.opcode == "fmul"]
    assert [activity.value(i) for i in products] == [True] * (count - 1) + [False]  # the last one is not stored
    return sum(each.visits for each in made)


def test_records_that_lead_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    small = visits(40, monkeypatch)
    monkeypatch.undo()
    assert visits(80, monkeypatch) <= 2.2 * small


GIVEN = """
  %r{i} = call ptr @malloc(i64 16)
  store ptr %q{b}, ptr %r{i}
  %q{i} = call ptr @outside(ptr %r{i})
  %p{i} = load ptr, ptr %q{i}
  store ptr %p{i}, ptr %p{b}
"""
CALLS = """
declare ptr @malloc(i64)
declare ptr @outside(ptr)
define void @f(ptr noalias %x) {{
  %q0 = call ptr @outside(ptr %x)
  %p0 = load ptr, ptr %q0
{calls}
  ret void
}}
"""


def joined(module: Module, monkeypatch: pytest.MonkeyPatch) -> tuple[PointsTo, int]:
    """The map of a module, and the sizes of all sets of objects that are joined to others."""
    sizes: list[int] = []
    merge = memory.merge
    monkeypatch.setattr(memory, "merge", lambda into, more, most: sizes.append(len(more)) or merge(into, more, most))
    points_to = PointsTo(module, module.functions["f"])
    monkeypatch.undo()
    return points_to, sum(sizes)


def lists(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    points_to, sizes = joined(records(count), monkeypatch)
    walking = next(i for i in points_to.root.instructions() if i.name == "p")
    assert len(points_to.of(walking)) == count + 1
    return sizes


def test_loops_that_walk_along_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lists(80, monkeypatch) <= 2.2 * lists(40, monkeypatch)


def given(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    module = parse(CALLS.format(calls="".join(GIVEN.format(i=i, b=i - 1) for i in range(1, count + 1))))
    points_to, sizes = joined(module, monkeypatch)
    pointers = [i for i in points_to.root.instructions() if i.name.startswith("p")]
    every = {points_to.unknown, *points_to.objects.values()}
    assert len(every) == count + 2
    assert all(points_to.of(pointer) == every for pointer in pointers)
    return sizes


def test_records_that_unknown_calls_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert given(80, monkeypatch) <= 2.2 * given(40, monkeypatch)


OF_ONE_CLASS = "  %r{i} = alloca [2 x ptr]\n  store ptr @t, ptr %r{i}\n"
LINKED = "  %n{i} = getelementptr i8, ptr %r{i}, i64 8\n  store ptr %r{b}, ptr %n{i}\n"
TOLD = """
@t = internal constant [2 x ptr] [ptr @f, ptr @f]
define void @f() {{
  %r0 = alloca [2 x ptr]
{records}
  br label %loop
loop:
  %p = phi ptr [ %r{last}, %0 ], [ %next, %loop ]
  %told = getelementptr i8, ptr %p, i64 0, !je.tables !{{i64 0, !"t", i64 0}}
  %at = getelementptr i8, ptr %told, i64 8
  %next = load ptr, ptr %at
  br label %loop
}}
"""


def told(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    asked: list[object] = []
    may_hold = PointsTo._may_hold  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(PointsTo, "_may_hold", lambda *of: asked.append(of) or may_hold(*of))
    text = "".join(part.format(i=i, b=i - 1) for i in range(1, count + 1) for part in (OF_ONE_CLASS, LINKED))
    module = parse(TOLD.format(records=text, last=count))
    points_to = PointsTo(module, module.functions["f"])
    monkeypatch.undo()
    address = next(i for i in points_to.instructions() if i.name == "told")
    assert len(points_to.of(address)) == count  # the first one has no table
    return len(asked)


def test_objects_of_which_it_is_told_what_table_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that may hold it may always do so."""
    assert told(80, monkeypatch) <= 2.2 * told(40, monkeypatch)


KEPT = "  %r{i} = alloca [64 x ptr]\n  store ptr %r{i}, ptr %all\n"
PASSED = "  %a{i} = getelementptr ptr, ptr %p, i64 {i}\n  store ptr %p, ptr %a{i}\n  %q{i} = load ptr, ptr %a{i}\n"


def crowded(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Whatever a program has is in one table, from which each of its functions takes it."""
    text = "".join(KEPT.format(i=i) for i in range(count)) + "  %p = load ptr, ptr %all\n"
    text += "".join(PASSED.format(i=i) for i in range(count))
    module = parse(f"define void @f() {{\n  %all = alloca ptr\n{text}  ret void\n}}")
    monkeypatch.setattr(escaped, "_FEW_INSTRUCTIONS", 0)
    points_to, sizes = joined(module, monkeypatch)
    records = {item for value, item in points_to.objects.items() if value.name.startswith("r")}
    loaded = [i for i in points_to.root.instructions() if i.name.startswith(("p", "q"))]
    assert len(records) == count and all(points_to.of(pointer) == records for pointer in loaded)
    return sizes


def test_records_of_all_kinds_in_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the pairs of values and records, and not as those times what each of them holds."""
    assert crowded(80, monkeypatch) <= 4.2 * crowded(40, monkeypatch)


TABLE = "@t{i} = internal constant [2 x ptr] [ptr @t{a}, ptr @t{b}]\n"
WALKED = """
  %a{i} = getelementptr ptr, ptr %p{b}, i64 %n
  %p{i} = load ptr, ptr %a{i}
  store ptr %p{i}, ptr %kept
  %q{i} = load ptr, ptr %kept
"""


def walked(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Tables that lead to each other, as those that describe the classes of a program, and code that walks through
    whichever it is given."""
    tables = "".join(TABLE.format(i=i, a=(i + 1) % count, b=i * 2 % count) for i in range(count))
    steps = "".join(WALKED.format(i=i, b=i - 1) for i in range(1, count + 1))
    start = "  %kept = alloca ptr\n  %p0 = getelementptr i8, ptr @t0, i64 0\n"
    module = parse(
        f"{tables}define void @f(i64 %n) {{\n{start}{steps}  br label %loop\nloop:\n"
        f"  %p = phi ptr [ %p{count}, %0 ], [ %next, %loop ]\n  %next = load ptr, ptr %p\n"
        "  store ptr %next, ptr %kept\n  br label %loop\n}"
    )
    monkeypatch.setattr(escaped, "_FEW_INSTRUCTIONS", 0)
    points_to, sizes = joined(module, monkeypatch)
    all_tables = {item for item in points_to.objects.values() if item.is_constant}
    loaded = [i for i in points_to.root.instructions() if i.name.startswith("q")]
    assert len(all_tables) == count and all(points_to.of(pointer) == all_tables for pointer in loaded)
    return sizes


def test_tables_that_lead_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert walked(160, monkeypatch) <= 3 * walked(80, monkeypatch)


COPIES = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f() {{
{objects}
  store double 1.0, ptr %o{last}
{copies}
  ret void
}}
"""
COPY = "  call void @llvm.memcpy.p0.p0.i64(ptr %o{a}, ptr %o{b}, i64 64, i1 false)\n"


def carried(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many facts copies carry, each of which is found by one copy and carried back by it and on by the next."""
    moved: list[object] = []
    move = words._moved  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(words, "_moved", lambda fact, *rest: moved.append(fact) or move(fact, *rest))
    objects = "\n".join(f"  %o{i} = alloca [8 x double]" for i in range(count + 1))
    copies = "".join(COPY.format(a=i, b=i + 1) for i in range(count))
    module = parse(COPIES.format(objects=objects, copies=copies, last=count))
    points_to = PointsTo(module, module.functions["f"])
    found = words.Words(points_to, {})
    assert all(found.of(item) for item in points_to.objects.values())
    return len(moved)


def test_numbers_that_are_copied_on_and_on(monkeypatch: pytest.MonkeyPatch) -> None:
    small = carried(20, monkeypatch)
    monkeypatch.undo()
    assert carried(40, monkeypatch) <= 2.2 * small


FORGOTTEN = "  %r{i} = call ptr @malloc(i64 16)\n  store ptr %r{i}, ptr %kept\n"
ANY_READ = "  %p{i} = load ptr, ptr %kept\n  %v{i} = load double, ptr %p{i}\n"


def noted(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many places are looked at for accesses each of which may be to any of as many objects."""
    looked: list[object] = []
    inside = words.inside
    monkeypatch.setattr(words, "inside", lambda *at: looked.append(at) or inside(*at))
    body = "".join(text.format(i=i) for text in (FORGOTTEN, ANY_READ) for i in range(count))
    start = "declare ptr @malloc(i64)\ndefine void @f() {\n  %kept = alloca ptr\n"
    module = parse(f"{start}{body}  ret void\n}}")
    points_to = PointsTo(module, module.functions["f"])
    found = words.Words(points_to, {})
    last = next(i for i in points_to.instructions() if i.name == f"p{count - 1}")
    assert found.numbers(last, 8) == {(0, T.DOUBLE)} and len(points_to.of(last)) == count
    return len(looked)


def test_accesses_to_any_of_many_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    assert noted(60, monkeypatch) <= 2.2 * noted(30, monkeypatch)


DIAMOND = """
  %c{i} = icmp eq i64 %n, {i}
  br i1 %c{i}, label %a{i}, label %d{b}
a{i}:
  br label %d{b}
d{b}:
"""
SKIPPED = """
define void @f(ptr noalias %x, ptr noalias %y, i64 %n) {{
  store double 1.0, ptr %y
  br label %d0
d0:
{diamonds}
  %v = load double, ptr %x
  %z = fcmp oeq double %v, 0.0
  br i1 %z, label %end, label %body
body:
  %t = fmul double %v, 3.0
  %o = load double, ptr %y
  %s = fadd double %o, %t
  store double %s, ptr %y
  br label %end
end:
  ret void
}}
"""


def effort(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    spent: list[int] = []
    monkeypatch.setattr(Effort, "spend", lambda _, count: spent.append(count))
    diamonds = "".join(DIAMOND.format(i=i, b=i + 1) for i in range(count))
    module = parse(SKIPPED.format(diamonds=diamonds))
    function = module.functions["f"]
    verdicts = Shortcuts(module, function, standard(), lambda _: True).verdicts(exact_comparisons(function))
    assert [*verdicts.values()] == ["proved"]
    return sum(spent)


def test_what_memory_holds_behind_paths_that_part_and_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert effort(6, monkeypatch) <= 2.2 * effort(3, monkeypatch)


def test_a_step_runs_again_for_what_it_read_and_for_nothing_else() -> None:
    """Facts go against the order of the steps: each is one more than the next one's, up to 3."""
    facts = dict.fromkeys("abcd", 0)
    after = {"a": "b", "b": "c", "c": "d"}

    def step(name: str) -> None:
        wanted = 1
        if name in after:
            work.read(after[name])
            wanted = min(3, facts[after[name]] + 1)
        if wanted > facts[name]:
            facts[name] = wanted
            work.changed(name)

    work = Worklist("abcd", step)
    work.run()
    assert facts == {"a": 3, "b": 3, "c": 2, "d": 1}
    assert work.visits == 4 + 3 + 2 + 1


def test_what_a_pass_changes_behind_it_waits_for_the_next() -> None:
    """Facts that are too many are widened: a loop at the front must not go around before what follows it is seen."""
    ran: list[int] = []

    def step(node: int) -> None:
        ran.append(node)
        work.read("fact")
        if node == 1 and ran.count(1) < 3:
            work.changed("fact")

    work: Worklist[int] = Worklist([0, 1, 2], step)
    work.run()
    assert ran == [0, 1, 2, 0, 1, 2, 0, 1]


STEP = """
  %p{i} = fcmp oeq double %v, {i}.0
  br i1 %p{i}, label %u{i}, label %w{i}
u{i}:
  %l{i} = add nsw i64 %k{i}, 1
  store double 1.0, ptr %y
  br label %w{i}
w{i}:
  %k{b} = phi i64 [ %k{i}, %v{i} ], [ %l{i}, %u{i} ]
  br label %v{b}
v{b}:
"""
COUNTING = """
define void @f(ptr noalias %x, ptr noalias %y) {{
entry:
  br label %v0
v0:
  %i = phi i64 [ 0, %entry ], [ %j, %v{last} ]
  %k0 = phi i64 [ 0, %entry ], [ %k{last}, %v{last} ]
  %v = load double, ptr %x
{steps}
  %j = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %j, 10
  br i1 %more, label %v0, label %end
end:
  ret void
}}
"""


def test_ways_to_a_counter_that_meet_again_and_again() -> None:
    """Each of 30 branches may add one: as many ways as a number of 30 bits has values."""
    steps = "".join(STEP.format(i=i, b=i + 1) for i in range(30))
    function = parse(COUNTING.format(steps=steps, last=30)).functions["f"]
    counter = next(i for i in function.instructions() if i.name == "k0")
    assert Recurrences.of(function).range_of(counter) == Interval(0, 9 * 30)


CHOSEN = """
  %a{i} = load i64, ptr %x
  %b{i} = load i64, ptr %x
  %c{i} = icmp sgt i64 %a{i}, %b{i}
  br i1 %c{i}, label %end, label %m{i}
m{i}:
  %d{i} = icmp slt i64 %a{i}, %b{i}
  br i1 %d{i}, label %u{i}, label %w{i}
u{i}:
  br label %w{i}
w{i}:
  %k{i} = phi i64 [ %a{i}, %m{i} ], [ %b{i}, %u{i} ]
"""


def intervals(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    asked: list[object] = []
    interval = Recurrences.interval
    monkeypatch.setattr(Recurrences, "interval", lambda facts, p: asked.append(p) or interval(facts, p))
    steps = "".join(CHOSEN.format(i=i) for i in range(count))
    text = f"define void @f(ptr noalias %x) {{\n{steps}  br label %end\nend:\n  ret void\n}}\n"
    function = parse(text).functions["f"]
    facts = Recurrences.of(function)
    for phi in [i for i in function.instructions() if i.name.startswith("k")]:
        facts.form(phi)
    return len(asked)


def test_choices_behind_many_tests_of_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    small = intervals(20, monkeypatch)
    monkeypatch.undo()
    assert intervals(40, monkeypatch) <= 2.2 * small


WORD = """
  %p{i} = getelementptr i64, ptr %x, i64 {i}
  %w{i} = load i64, ptr %p{i}
  %q{i} = getelementptr i64, ptr %y, i64 {i}
  store i64 %w{i}, ptr %q{i}
"""


def scans(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often retyping goes through a whole function, where each of its words is a web of its own."""
    seen: list[object] = []
    for name in ("uses", "forget_records", "remove_dead"):
        whole = getattr(retype, name)
        monkeypatch.setattr(retype, name, lambda *given, whole=whole: seen.append(whole) or whole(*given))
    module = parse(
        "define void @f(ptr noalias %x, ptr noalias %y) {\n"
        + "".join(WORD.format(i=i) for i in range(count))
        + "  ret void\n}"
    )
    buffers = (Buffer("x", "f64", (count,), "in"), Buffer("y", "f64", (count,), "out"))
    result = retype.retype(ArrayFunction(module, "f", buffers))
    monkeypatch.undo()
    loads = [i for i in result.module.functions["f"].instructions() if i.opcode == "load"]
    assert len(loads) == count and all(str(load.type) == "double" for load in loads)
    return len(seen)


def test_words_that_are_copied_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scans(40, monkeypatch) == scans(20, monkeypatch)


OTHERS = "  %p{i} = fmul double %t{i}, {i}.25\n  %t{b} = fsub double %p{i}, {i}.5\n"


def sampled(count: int, monkeypatch: pytest.MonkeyPatch, factor: str = "%x") -> int:
    """How many samples are made for a question about a number, and about what is made with so many constants."""
    sizes: list[int] = []
    made_of = single_values.made_of

    def noted(*given: Any) -> Any:
        found = made_of(*given)
        sizes.append(0 if found is None else found.size)
        return found

    monkeypatch.setattr(single_values, "made_of", noted)
    steps = "  %t0 = fadd double 1.0, 2.0\n" + "".join(OTHERS.format(i=i, b=i + 1) for i in range(count))
    sum_ = f"  %s = fmul double %x, {factor}\n  %r = fadd double %t{count}, %s\n"
    end = f"{sum_}  %q = fcmp ule double %r, 0.0\n  ret i1 %q\n"
    module = parse(f"define i1 @f(double %x) {{\n{steps}{end}}}")
    question = next(i for i in module.functions["f"].instructions() if i.opcode == "fcmp")
    assert isinstance(question, I.Compare) and single_values.answer_at_equality(question) is None
    monkeypatch.undo()
    return sum(sizes)


def test_questions_that_many_constants_are_in(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < sampled(80, monkeypatch) <= 2.2 * sampled(40, monkeypatch)
    assert sampled(40, monkeypatch, factor="0.5") == 0  # of a number of which a larger one changes the answer once


EARLY = """
  %x{i} = load double, ptr %x
  %t{b} = fadd double %t{i}, %x{i}
  %c{i} = fcmp ogt double %t{b}, {i}.0
  br i1 %c{i}, label %e{i}, label %m{b}
e{i}:
  %s{i} = call double @sin(double %t{b})
  br label %end
m{b}:
"""


def reversed_size(count: int) -> int:
    """The instructions of a gradient in which each of so many ways out reads a sum that the ways before it part."""
    steps = "".join(EARLY.format(i=i, b=i + 1) for i in range(count))
    ways = "".join(f", [ %s{i}, %e{i} ]" for i in range(count))
    text = (
        f"declare double @sin(double)\ndefine i32 @f(ptr noalias %x, ptr noalias %y) {{\n  br label %m0\nm0:\n"
        f"  %t0 = load double, ptr %x\n{steps}  br label %end\nend:\n"
        f"  %r = phi double [ %t{count}, %m{count} ]{ways}\n  store double %r, ptr %y\n  ret i32 0\n}}"
    )
    buffers = (Buffer("x", "f64", (), "in"), Buffer("y", "f64", (), "out"))
    derived = derive(ArrayFunction(parse(text), "f", buffers), (Vjp((True, False), (False, True)),), Options())
    return sum(len(block.instructions) for f in derived.module.functions.values() for block in f.blocks)


def test_ways_out_that_read_what_leads_to_them() -> None:
    assert reversed_size(80) <= 2.2 * reversed_size(40)


ROW = """
  %r{i} = mul i64 %m, {i}
  %s{i} = add i64 %r{i}, %k
  %q{i} = getelementptr double, ptr %y, i64 %s{i}
  store double 1.0, ptr %q{i}
"""


def looks(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a place is looked at, of iterations that write to several rows of a matrix."""
    asked: list[object] = []
    place_of = digits.place_of
    monkeypatch.setattr(digits, "place_of", lambda *given: asked.append(given) or place_of(*given))
    module = parse(
        "define void @f(ptr noalias %y, i64 %m) {\nentry:\n  br label %loop\nloop:\n"
        "  %k = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
        + "".join(ROW.format(i=i) for i in range(1, count + 1))
        + "  %next = add nuw nsw i64 %k, 1\n  %more = icmp ult i64 %next, 1000\n"
        "  br i1 %more, label %loop, label %end\nend:\n  ret void\n}\n"
    )
    function = module.functions["f"]
    facts = Recurrences.of(function)
    (loop,) = facts.loops
    found = MemoryUses(function, PointsTo(module, function), DataLayout(module)).inside(loop)
    assert digits.places_of(facts, found, function.arguments[0], loop, None) is not None
    monkeypatch.undo()
    return len(asked)


def test_rows_that_iterations_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(40, monkeypatch) <= 2.2 * looks(20, monkeypatch)


SIDES = """
  %p{i} = getelementptr double, ptr %x, i64 {i}
  %w{i} = load double, ptr %p{i}
  %v{i} = fmul double %w{i}, %w{i}
  %b{i} = fcmp olt double %v{i}, 1.0
  %a{i} = fcmp ogt double %v{i}, 1.0
  %s{i} = select i1 %b{i}, double 2.0, double 3.0
  %t{i} = select i1 %a{i}, double 4.0, double 5.0
  %m{i} = fadd double %n{before}, %s{i}
  %n{i} = fadd double %m{i}, %t{i}
"""


def followed(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often it is asked what a value is used for, where numbers are held against 1 from both sides and what that
    chooses comes together in one factor."""
    asked: list[object] = []
    used = Consequences.used
    monkeypatch.setattr(Consequences, "used", lambda self, value: asked.append(value) or used(self, value))
    module = parse(
        "define void @f(ptr noalias %x, ptr noalias %y) {\n  %n0 = fadd double 1.0, 1.0\n"
        + "".join(SIDES.format(i=i, before=i - 1) for i in range(1, count + 1))
        + f"  %r = fmul double %n{count}, %v1\n  store double %r, ptr %y\n  ret void\n}}"
    )
    buffers = (Buffer("x", "f64", (count + 1,), "in"), Buffer("y", "f64", (), "out"))
    found = general(ArrayFunction(module, "f", buffers), Vjp((True, False), (False, True)), standard())
    monkeypatch.undo()
    assert [c.proved for c in found.comparisons] == [False]  # no place tells them apart
    return len(asked)


def test_what_comes_of_questions_about_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed(20, monkeypatch) <= 2.2 * followed(10, monkeypatch)


def test_sets_of_offsets_are_joined_once_however_many_objects_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Congruence] = []
    includes = Congruence.includes

    def counted(self: Congruence, other: Congruence) -> bool:
        asked.append(other)
        return includes(self, other)

    monkeypatch.setattr(Congruence, "includes", counted)
    strides, more = frozenset([Congruence(0, 24), Congruence(8, 0)]), frozenset([Congruence(48, 0), Congruence(3, 0)])
    into = dict.fromkeys(range(1_000), strides)
    assert merge(into, dict.fromkeys(into, more), 4) == list(into)
    assert set(into.values()) == {frozenset([*strides, Congruence(3, 0)])}
    assert merge(into, dict.fromkeys(into, frozenset([ANY])), 4) == list(into)
    assert not merge(into, dict.fromkeys(into, more), 4)
    assert set(into.values()) == {frozenset([ANY])}
    assert 0 < len(asked) < 100


def moves(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often it is asked where a number comes to lie, where any of some objects is copied to any of them."""
    asked: list[object] = []
    moved = Copied.moved
    monkeypatch.setattr(Copied, "moved", lambda self, part: asked.append(part) or moved(self, part))
    body = ["%p0 = call ptr @malloc(i64 %n)"]
    for i in range(1, count):
        body += [f"%o{i} = call ptr @malloc(i64 %n)", f"%c{i} = icmp eq i64 %n, {i}"]
        body += [f"%p{i} = select i1 %c{i}, ptr %o{i}, ptr %p{i - 1}"]
    body += [
        "%d = load double, ptr %x",
        f"%k = getelementptr double, ptr %p{count - 1}, i64 %n",
        "store double %d, ptr %k",
    ]
    body += [f"call void @llvm.memmove.p0.p0.i64(ptr %p{count - 1}, ptr %p{count - 1}, i64 %n, i1 false)", "ret void"]
    module = parse("define void @f(i64 %n, ptr %x) {\n" + "\n".join(body) + "\n}\n" + DECLARED)
    points_to = PointsTo(module, module.functions["f"])
    inputs = [points_to.objects[module.functions["f"].arguments[1]]]
    assert len(Activity(points_to, standard(), inputs, None).varied_objects) == count + 1
    monkeypatch.undo()
    return len(asked)


DECLARED = """
declare ptr @malloc(i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def test_copies_from_many_objects_to_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert moves(20, monkeypatch) <= 2.2 * moves(10, monkeypatch)
