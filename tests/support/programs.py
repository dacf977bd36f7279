"""Random C programs for Hypothesis: loops, branches, exits and memory traffic over bounded, smooth arithmetic.

Every program is one function of the same signature. Values stay of the order of one: what a statement stores passes
through sin, tanh or a quotient with a denominator of at least one. Whether finite differences mean anything at the
inputs (a branch may be about to turn) is for the test to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hypothesis import strategies as st

SIZES = ((5, 4), (37, 18))  # small enough to read, and large enough for loops over vectors with a rest
SIGNATURE = (
    "n: i32, m: i32, a: f64, x: f64[n], place: i32[m], scratch w: f64[n], inout y: f64[n], inout z: f64[m] -> f64"
)
HEADER = """#include <math.h>
#include <stdlib.h>
#include <string.h>

static double blend(double p, double q) {{ return p > q ? p * q + 0.5 : p - 0.25 * q * q; }}

double program(int n, int m, double a, const double *x, const int *place, double *w, double *y, double *z) {{
    double t0 = a, t1 = 0.3, t2 = x[1];
    unsigned q = 1;
    {local};
    for (int i = 0; i < n; i++) w[i] = l[i] = 0.4 * x[i];
"""
LOCAL = ("double l[{n}]", "double *l = malloc(n * sizeof *l)")  # what leaves early does not free it: a small leak
FOOTER = "    return t0 + sin(t1 * t2) + l[2] * w[3];\n}\n"
SCALARS = ("t0", "t1", "t2")

Draw = Callable[[st.SearchStrategy], object]


@dataclass(frozen=True)
class Program:
    """C source, and the extents of its arrays."""

    source: str
    n: int
    m: int


@st.composite
def programs(draw: Draw) -> Program:
    """One program."""
    n, m = draw(st.sampled_from(SIZES))  # type: ignore[misc]
    return Program(Writer(draw, n, m).program(), n, m)


@dataclass
class Writer:
    """Writes one program; `draw` makes every choice."""

    draw: Draw
    n: int
    m: int
    lines: list[str] = field(default_factory=list)
    loops: list[tuple[str, int]] = field(default_factory=list)  # variables in scope and how many values each takes
    breakable: int = 0  # loops that a break in the current place would leave
    names: int = 0
    depth: int = 1  # of indentation

    def program(self) -> str:
        for _ in range(self.number(2, 5)):
            self.statement(3)
        local = self.pick(*LOCAL).format(n=self.n)
        return HEADER.format(local=local) + "".join(self.lines) + FOOTER

    @property
    def writable(self) -> dict[str, int]:
        """The arrays that statements may write, with their extents."""
        return {"w": self.n, "l": self.n, "y": self.n, "z": self.m}

    @property
    def readable(self) -> dict[str, int]:
        return self.writable | {"x": self.n}

    # Choices

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))  # type: ignore[return-value]

    def pick(self, *choices: str) -> str:
        return choices[self.number(0, len(choices) - 1)]

    def constant(self, low: int = -12, high: int = 12) -> str:
        value = self.number(low, high) / 10
        return str(value) if value >= 0 else f"({value})"

    # Output

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text + "\n")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        self.emit((head + " {").lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.emit(tail)

    # Expressions

    def index(self, extent: int) -> str:
        """An index that stays inside an array of that many elements."""
        if not self.loops or self.number(0, 4) == 0:
            return self.pick(str(self.number(0, extent - 1)), f"q % {extent}")
        variable, values = self.loops[self.number(0, len(self.loops) - 1)]
        inside = variable if values <= extent else f"{variable} % {extent}"
        kind = self.number(0, 3)
        if kind == 0:
            looked_up = variable if values <= self.m else f"{variable} % {self.m}"
            return f"place[{looked_up}]" if extent == self.n else f"place[{looked_up}] % {extent}"
        if kind == 1:
            return f"({variable} + {self.number(1, 3)}) % {extent}"
        if kind == 2 and values <= extent:
            return f"{extent - 1} - {variable}"
        return inside

    def element(self, arrays: dict[str, int]) -> str:
        array = self.pick(*arrays)
        return f"{array}[{self.index(arrays[array])}]"

    def leaf(self) -> str:
        kind = self.number(0, 6)
        if kind == 0:
            return self.constant()
        if kind == 6:
            return "0.1 * " + (self.loops[-1][0] if self.loops else "q")
        return self.pick(*SCALARS, "a") if kind < 3 else self.element(self.readable)

    def expression(self, depth: int = 2) -> str:
        if depth == 0:
            return self.leaf()
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} - 0.5 * {b})",
            f"{a} * {b}",
            f"{a} / (1.5 + {b} * {b})",
            f"exp(-{a} * {a})",
            f"sqrt(1 + {a} * {a})",
            f"log(2.5 + sin({a}))",
            f"pow(1.5 + {a} * {a}, 1.3)",
            f"fmax({a}, {b})",
            f"fabs({a})",
            f"atan2({a}, 1.2 + {b} * {b})",
            f"blend({a}, {b})",
            f"({a} > {self.constant()} ? {a} : 0.5 * {b})",
        )

    def bounded(self) -> str:
        e = self.expression(self.number(0, 2))
        return self.pick(f"sin({e})", f"tanh({e})", f"{e} / (1 + {e} * {e})")

    def condition(self) -> str:
        if self.loops and self.number(0, 2) == 0:
            variable, _ = self.loops[-1]
            return self.pick(f"{variable} % 2 == 0", f"{variable} > 1", f"place[{variable} % {self.m}] > 2")
        return f"{self.expression(1)} {self.pick('>', '<')} {self.constant()}"

    # Statements

    def statement(self, depth: int) -> None:
        simple = (self.assign, self.assign, self.update, self.swap, self.leave, self.copy, self.choose, self.step)
        nested = (self.count, self.count, self.branch, self.repeat, self.switch)
        chosen = self.number(0, len(simple) + (len(nested) if depth > 0 else 0) - 1)
        if chosen < len(simple):
            simple[chosen]()
        else:
            nested[chosen - len(simple)](depth)

    def body(self, depth: int) -> None:
        for _ in range(self.number(1, 3)):
            self.statement(depth - 1)

    def target(self) -> str:
        return self.pick(*SCALARS) if self.number(0, 2) == 0 else self.element(self.writable)

    def assign(self) -> None:
        self.emit(f"{self.target()} = {self.bounded()};")

    def update(self) -> None:
        target, value = self.target(), self.bounded()
        self.emit(
            self.pick(
                f"{target} += 0.5 * {value};",
                f"{target} = {target} * {target} / (1 + 0.5 * {target} * {target}) + 0.2 * {value};",
            )
        )

    def swap(self) -> None:
        a, b = self.element(self.writable), self.element(self.writable)
        with self.block(""):
            self.emit(f"double keep = {a};")
            self.emit(f"{a} = {b};")
            self.emit(f"{b} = 0.9 * keep;")

    def leave(self) -> None:
        if not self.breakable or self.number(0, 4) == 0:
            self.emit(f"if ({self.condition()}) return {self.bounded()};")
        else:
            self.emit(f"if ({self.condition()}) {self.pick('break', 'continue')};")

    def choose(self) -> None:
        """One of two arrays, through a pointer that data decides."""
        a, b = self.pick("w", "y"), self.pick("l", "y")
        with self.block(""):
            self.emit(f"double *p = {self.condition()} ? {a} : {b};")
            place = f"p[{self.index(self.n)}]"
            self.emit(self.pick(f"{place} = {self.bounded()};", f"t1 += 0.5 * {place};", f"{place} += 0.3 * t2;"))

    def step(self) -> None:
        """An integer that depends on data, and later serves as an index."""
        self.emit(self.pick(f"q += {self.condition()};", f"q = place[{self.index(self.m)}] + 1;"))

    def copy(self) -> None:
        to, source = self.pick("w", "l", "y"), self.pick("w", "l", "y", "x")
        if to == source:
            count = self.number(1, self.n - 1)
            self.emit(
                self.pick(f"memmove({to} + 1, {to}, ", f"memmove({to}, {to} + 1, ") + f"{count} * sizeof(double));"
            )
        else:
            self.emit(f"memcpy({to}, {source}, {self.number(1, self.n)} * sizeof(double));")

    def count(self, depth: int) -> None:
        """A counted loop: up, down, by two, or as far as an outer variable."""
        self.names += 1
        v = f"i{self.names}"
        heads = [
            (f"for (int {v} = 0; {v} < n; {v}++)", self.n),
            (f"for (int {v} = 0; {v} < m; {v}++)", self.m),
            (f"for (int {v} = n - 1; {v} >= 0; {v}--)", self.n),
            (f"for (int {v} = 0; {v} < n; {v} += 2)", self.n),
            (f"for (int {v} = 0; {v} < place[{self.number(0, self.m - 1)}]; {v}++)", self.n),
        ]
        if self.loops:
            outer, values = self.loops[-1]
            heads.append((f"for (int {v} = 0; {v} <= {outer}; {v}++)", values))
        head, values = heads[self.number(0, len(heads) - 1)]
        with self.block(head):
            self.inside(v, values, depth)

    def repeat(self, depth: int) -> None:
        """A loop that data ends, though no later than a counter."""
        self.names += 1
        v = f"k{self.names}"
        self.emit(f"int {v} = -1;")
        condition = self.condition()
        if self.number(0, 1):
            with self.block(f"while (++{v} < {self.m} && {condition})"):
                self.inside(v, self.m, depth)
        else:
            with self.block("do", f"}} while ({v} < {self.m - 1} && {condition});"):
                self.emit(f"{v}++;")
                self.inside(v, self.m, depth)

    def inside(self, variable: str, values: int, depth: int) -> None:
        self.loops.append((variable, values))
        self.breakable += 1
        self.body(depth)
        self.breakable -= 1
        self.loops.pop()

    def branch(self, depth: int) -> None:
        with self.block(f"if ({self.condition()})"):
            self.body(depth)
        if self.number(0, 1):
            with self.block("else"):
                self.body(depth)

    def switch(self, depth: int) -> None:
        """Cases that end, one that falls through, and a default."""
        outside, self.breakable = self.breakable, 0  # a break would leave the switch
        with self.block(f"switch (place[{self.index(self.m)}])"):
            for label in ("case 0:", "case 2:", "default:"):
                with self.block(label, "}" if label == "case 0:" else "} break;"):
                    self.body(min(depth, 2))
        self.breakable = outside
