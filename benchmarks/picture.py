"""Gradients over their functions, drawn: a line for each function, a mark for each form of its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.report import TOOLS, Row

_FORMS = {
    "one function": ("one", "value", "o", "#1f5fa8"),
    "two sweeps": ("two", "value", "|", "#1f5fa8"),
    "by hand": ("hand", "value", "D", "#2a8a4a"),
    "jax.numpy": ("jax", "value", "s", "#b98200"),
}
_THEIRS = dict(zip(TOOLS, (("x", "#b03030"), ("+", "#803080"), ("1", "#777777")), strict=True))


def draw(rows: Sequence[Row], path: Path) -> None:
    """Writes an SVG; the same figures give the same file."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "benchmarks", "font.size": 8}):
        figure = Figure(figsize=(7.5, 0.23 * len(rows) + 1))
        axes = figure.subplots()
        for name, (form, over, marker, colour) in _FORMS.items():
            _marks(axes, name, [row.ratio(form, over) for row in rows], marker, colour)
        for tool, (marker, colour) in _THEIRS.items():
            _marks(axes, f"{tool} (stored)", [row.theirs(tool) for row in rows], marker, colour)
        axes.set_xscale("log")
        axes.set_xticks([0.2, 0.5, 1, 2, 5, 10, 20, 50, 100], ["0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"])
        axes.minorticks_off()
        axes.set_yticks(range(len(rows)), [f"{row.name}, {row.size}" for row in rows])
        axes.invert_yaxis()
        axes.grid(True, color="#dddddd", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel("time of the gradient over the time of the function")
        axes.legend(loc="upper center", bbox_to_anchor=(0.3, -0.06), ncols=4, frameon=False)
        figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})


def _marks(axes: Axes, label: str, ratios: Sequence[float | None], marker: str, colour: str) -> None:
    points = [(ratio, number) for number, ratio in enumerate(ratios) if ratio is not None]
    if points:
        axes.plot(*zip(*points, strict=True), marker, label=label, color=colour, markersize=4, markerfacecolor="none")
