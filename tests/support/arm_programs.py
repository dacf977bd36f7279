"""C programs from a seed: loops whose iterations go one way or another, as integers say, and keep numbers on each.

Branches, switches that fall through, loops of several lengths with exits, jumps from one arm into another and out of
all of them. Which way a program goes does not depend on numbers, which stay of the order of one, so that finite
differences can judge every one of them.
"""

from __future__ import annotations

from random import Random

import numpy as np

from tests.kernels.case import Value

SIGNATURE = "n: i32, way: i32[n], x: f64[n], inout y: f64[n] -> f64"
_FORMS = (
    "sin({a} * {b} + 0.3)", "exp(-{a} * {a}) + 0.2 * {b}", "{a} / (1.2 + {b} * {b})", "log(1.5 + {a} * {a}) * {b}",
    "tanh({a} - {b}) + 0.1 * {a}", "0.5 * {a} + 0.4 * {b}", "sqrt(0.7 + {a} * {a}) - 0.6 * {b}",
)  # fmt: skip
_FRAME = """#include <math.h>
double program(int n, const int *way, const double *x, double *y) {{
  double s = 0.4, t = 0.7;
  int k = 1;
  short h = 2;
  for (int i = 0; i < n; i++) {{
    int w = way[i];
{body}
    next:;
  }}
  {label}return s * t + sin(s);
}}
"""


def inputs(r: np.random.Generator, length: int) -> dict[str, Value]:
    """Arguments of a program."""
    way = r.integers(0, 64, length).astype(np.int32)
    return {"way": way, "x": r.uniform(0.3, 1.4, length), "y": r.uniform(0.2, 0.9, length)}


def program(seed: int) -> str:
    """C source of `program`."""
    return _Writer(Random(seed)).program()


class _Writer:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0

    def program(self) -> str:
        body = [*self._branch(2, "    ", loops=0), *self._block(1, "    ", loops=0)]
        left = "done: " if any("goto done" in line for line in body) else ""
        text = _FRAME.format(body="\n".join(body), label=left)
        return text if "goto next" in text else text.replace("    next:;\n", "")

    def _block(self, depth: int, pad: str, loops: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self._random.randint(1, 2)):
            kind = self._random.random()
            if depth == 0:
                lines += self._numbers(pad, loops) if kind < 0.7 else self._leave(pad, loops)
            elif kind < 0.25:
                lines += self._branch(depth, pad, loops)
            elif kind < 0.45:
                lines += self._switch(depth, pad, loops)
            elif kind < 0.65:
                lines += self._jumps(depth, pad, loops)
            else:
                lines += self._loop(depth, pad, loops)
        return lines

    def _numbers(self, pad: str, loops: int) -> list[str]:
        pick = self._random.choice
        places = ["i", "(k + h) % n", "k % n", *(f"(i + j{n}) % n" for n in range(loops))]
        read = ["s", "t", f"x[{pick(places)}]", f"y[{pick(places)}]"]
        form = pick(_FORMS).format(a=pick(["s", "t"]), b=pick(read))
        target = pick(["s", "s", "t", "t", f"y[{pick(places)}]"])
        lines = [f"{pad}{target} = {form};"]
        if self._random.random() < 0.3:
            lines.append(pad + pick(["k = (k * 5 + w) % 11;", "h = (h * 3 + k) % 7;", "k = (k + h + i) % 9;"]))
        return lines

    def _condition(self) -> str:
        return self._random.choice(["w & 1", "w & 2", "w & 4", "k % 3 == 1", "h % 2", "(w ^ k) & 1", "w % 5 == i % 3"])

    def _branch(self, depth: int, pad: str, loops: int) -> list[str]:
        lines = [f"{pad}if ({self._condition()}) {{", *self._arm(depth, pad, loops)]
        if self._random.random() < 0.4:
            lines += [f"{pad}}} else if ({self._condition()}) {{", *self._arm(depth, pad, loops)]
        return [*lines, f"{pad}}} else {{", *self._arm(depth, pad, loops), f"{pad}}}"]

    def _arm(self, depth: int, pad: str, loops: int) -> list[str]:
        lines = self._numbers(pad + "  ", loops)
        return lines + self._block(depth - 1, pad + "  ", loops) if self._random.random() < 0.4 else lines

    def _switch(self, depth: int, pad: str, loops: int) -> list[str]:
        lines = [f"{pad}switch ((w >> {self._random.randint(0, 3)}) % 4) {{"]
        for number in range(3):
            lines += [f"{pad}case {number}:", *self._arm(depth, pad, loops)]
            lines += [f"{pad}  break;"] if self._random.random() < 0.6 else []
        return [*lines, f"{pad}default:", *self._arm(depth, pad, loops), f"{pad}}}"]

    def _jumps(self, depth: int, pad: str, loops: int) -> list[str]:
        """One arm goes on in the middle of another."""
        self._names += 1
        label = f"middle{self._names}"
        lines = [f"{pad}if ({self._condition()}) {{", *self._arm(depth, pad, loops), f"{pad}  goto {label};"]
        lines += [f"{pad}}} else if ({self._condition()}) {{", *self._arm(depth, pad, loops)]
        lines += [f"{pad}  {label}:;", *self._arm(depth, pad, loops)]
        return [*lines, f"{pad}}} else {{", *self._arm(depth, pad, loops), f"{pad}}}"]

    def _loop(self, depth: int, pad: str, loops: int) -> list[str]:
        count = self._random.choice(["3", "w % 4", "1 + k % 3", "i % 3", "h % 5"])
        head = f"for (int j{loops} = 0, e = {count}; j{loops} < e; j{loops}++)"
        return [f"{pad}{head} {{", *self._arm(depth, pad, loops + 1), f"{pad}}}"]

    def _leave(self, pad: str, loops: int) -> list[str]:
        ways = ["goto next;", "goto next;", "goto done;" if self._random.random() < 0.3 else "goto next;"]
        ways += [f"{{ if (j{loops - 1}) break; }}", "continue;", "break;"] if loops else []
        often = "" if ways[2] == "goto next;" else " && i > n / 2"
        return [f"{pad}if ((w + k) % 7 == 3{often}) {self._random.choice(ways)}"]
