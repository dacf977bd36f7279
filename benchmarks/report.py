"""The figures of each machine (`results/*.json`) as a page and as pictures: `docs/measured.md`.

python -m benchmarks.report
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).resolve().parent / "results"
DOCS = RESULTS.parent.parent / "docs"
PUBLISHED: Mapping[str, Any] = json.loads((RESULTS.parent / "published.json").read_text())
TOOLS = ("Enzyme", "Tapenade", "Adept")
_HEADS = (
    "function", "size", "value", "by clang", "one function", "two sweeps", "one / value", "two / value", "by hand",
    "one / hand", "jax.numpy", "one / jax.numpy", *TOOLS, "tape kB", "build s", "commit",
)  # fmt: skip
_INTRODUCTION = """# What was measured

Made by `make bench`, which adds the machine that it runs on; [benchmarks.md](benchmarks.md) says what the functions are
and how they are timed. Microseconds of processor time, medians, one thread, all forms of a row in turns. Every gradient
was checked by finite differences, and the others against it, before it was timed.

*Value*: the function in our pipeline; *by clang*: the same source by `clang -O3 -march=native`. *One function*:
forward and reverse sweep in one call; *two sweeps*: what JAX runs. *By hand*: the adjoint in `benchmarks/adjoints/`.
*jax.numpy*: `jax.jit` of the pullback of the same function written there (`benchmarks/jax_functions.py`), with what a
call through JAX takes. *Enzyme*, *Tapenade*, *Adept*: their gradient over the function by clang, stored
(`benchmarks/published.json`), not of this run or machine. A tape of `-` has no static size. *Build*: the function and
the gradient in one function, from source to machine code.
"""
_WITHOUT = """
### One part less

The time of the gradient in one function without one part of the plan (`Options(without=...)`, or `vector_math=False`),
over the time with all of them, and in brackets the size of its tape over that with all.

"""
_OF_VALUES = """
### One part less, of values as well

What is done before differentiation or after it, to values as to derivatives (`"rows"`, `"lockstep"` in
`Options(without=...)`): times of the value and of the gradient in one function without it over those with it, all in
turns; 1.00 for all where the machine code of the value is the same.

"""
_WORDS = 2
"""So many columns of words, at the start."""


@dataclass(frozen=True)
class Row:
    """`microseconds`: of `value` (ours), `clang` (the same by clang), our gradient in `one` function and in `two`
    sweeps, that by `hand`, and that of `jax`, where they exist. `tape_bytes` is None for a tape of no static size."""

    name: str
    size: str
    microseconds: Mapping[str, float]
    tape_bytes: int | None
    build_seconds: float
    commit: str

    def ratio(self, form: str, over: str) -> float | None:
        times = self.microseconds
        return times[form] / times[over] if form in times and over in times else None

    def theirs(self, tool: str) -> float | None:
        """What another tool's gradient takes of the function by clang."""
        return PUBLISHED["ratios"].get(self.name, {}).get(self.size, {}).get(tool)

    @property
    def cells(self) -> tuple[str, ...]:
        times = self.microseconds
        return (
            self.name, self.size, *(_time(times.get(form)) for form in ("value", "clang", "one", "two")),
            _ratio(self.ratio("one", "value")), _ratio(self.ratio("two", "value")),
            _time(times.get("hand")), _ratio(self.ratio("one", "hand")),
            _time(times.get("jax")), _ratio(self.ratio("one", "jax")), *(_ratio(self.theirs(t)) for t in TOOLS),
            "-" if self.tape_bytes is None else f"{self.tape_bytes / 1000:,.1f}", f"{self.build_seconds:.1f}",
            self.commit,
        )  # fmt: skip


@dataclass(frozen=True)
class Ablation:
    """`times`: of the gradient without a part of the plan over that with all, for each part; `tapes`: bytes of the
    tapes, of that with all under "", None where one has no static size."""

    name: str
    size: str
    times: Mapping[str, float]
    tapes: Mapping[str, int | None]

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.name, self.size, *(f"{_ratio(t)}{self._tape(part)}" for part, t in self.times.items()))

    def _tape(self, part: str) -> str:
        """How the tape changes, where it does."""
        with_all, without = self.tapes[""], self.tapes[part]
        if with_all == without:
            return ""
        return f" ({_ratio(without / with_all)})" if with_all and without else " (other)"


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:,.{0 if microseconds >= 100 else 1}f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def means(rows: Sequence[Row]) -> dict[str, float]:
    """Geometric means, each over the rows that have both."""
    pairs = {
        "one function over value": ("one", "value"),
        "two sweeps over value": ("two", "value"),
        "one function over the function by clang": ("one", "clang"),
        "one function over the adjoint by hand": ("one", "hand"),
        "one function over the gradient of jax.numpy": ("one", "jax"),
        "value over the function by clang": ("value", "clang"),
    }
    found = {what: [r for row in rows if (r := row.ratio(*pair)) is not None] for what, pair in pairs.items()}
    return {what: geometric_mean(ratios) for what, ratios in found.items() if ratios}


def show(rows: Sequence[Row]) -> None:
    """Prints the table."""
    shown = Table(title="Microseconds of processor time, medians")
    for number, head in enumerate(_HEADS):
        shown.add_column(head, justify="left" if number < _WORDS else "right")
    for row in rows:
        shown.add_row(*row.cells)
    console = Console(width=None if os.isatty(1) else 220)
    console.print(shown)
    for what, mean in means(rows).items():
        console.print(f"{what}: {mean:.2f} (geometric mean)")


def machine_name() -> str:
    """What the system calls the processor, with the number of cores and the widest vectors."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    words = dict(re.findall(r"^(model name|flags)\s*: (.*)$", text, re.MULTILINE))
    flags = words.get("flags", "").split()
    vectors = next((f", {label}" for f, label in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if f in flags), "")
    name = words.get("model name", platform.machine()).replace("(R)", "").replace("(TM)", "")
    return f"{name}, {os.cpu_count()} cores{vectors}"


def keep(part: str, rows: Sequence[Row | Ablation], **more: str | float) -> None:
    """Adds rows of a part ("rows", "ablation", "ablation of values") to the file of this machine, in place of older
    ones of the same function and size, and `more` about the machine."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{_stem(machine_name())}.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"machine": machine_name()}
    found = {(row["name"], row["size"]): row for row in (*known.get(part, ()), *map(asdict, rows))}
    path.write_text(json.dumps({**known, **more, part: list(found.values())}, indent=1) + "\n")


def _stem(machine: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")


def stored() -> list[Mapping[str, Any]]:
    """What is kept of each machine."""
    files = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    kinds = {"rows": Row, "ablation": Ablation, "ablation of values": Ablation}
    return [{**f, **{part: [kind(**row) for row in f.get(part, ())] for part, kind in kinds.items()}} for f in files]


def page() -> str:
    """The text of docs/measured.md."""
    text = _INTRODUCTION
    for figures in stored():
        text += f"\n## {figures['machine']}\n\nPython {figures['Python']}, JAX {figures['JAX']}.\n"
        if figures["rows"]:
            text += f"\n![Gradients over their functions]({picture_of(figures)})\n\n"
            text += _table(_HEADS, figures["rows"])
            listed = "".join(f"| {what} | {mean:.2f} |\n" for what, mean in means(figures["rows"]).items())
            text += f"\n| geometric mean | |\n|---|--:|\n{listed}"
        if "exponent of norm" in figures:
            text += f"\nThe time of the gradient of `norm` grows as n to the {figures['exponent of norm']}.\n"
        if figures["ablation"]:
            text += _WITHOUT + _table(("function", "size", *figures["ablation"][0].times), figures["ablation"])
        if of_values := figures["ablation of values"]:
            text += _OF_VALUES + _table(("function", "size", *of_values[0].times), of_values)
    return text


def _table(heads: Sequence[str], rows: Sequence[Row | Ablation]) -> str:
    return (
        _line(heads) + _line(["---"] * _WORDS + ["--:"] * (len(heads) - _WORDS)) + "".join(_line(r.cells) for r in rows)
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def picture_of(figures: Mapping[str, Any]) -> str:
    return f"measured-{_stem(figures['machine'])}.svg"


def write_pages() -> None:
    from benchmarks.picture import draw

    (DOCS / "measured.md").write_text(page())
    for figures in stored():
        if figures["rows"]:
            draw(figures["rows"], DOCS / picture_of(figures))


if __name__ == "__main__":
    write_pages()
