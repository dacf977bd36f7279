"""Variables that are certainly written before they are read need no checks; what is not certain is still looked at."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.sanitize import outside

X = np.arange(1.0, 5.0)
ALL = "for (int a = 0; a < 4; a++)"
RIGHT = {
    "by_a_loop": (f"double t[4]; {ALL} t[a] = x[a];", f"{ALL} s += t[a] * t[3 - a];"),
    "by_a_nest": (
        f"double m[4][4]; {ALL} for (int b = 3; b >= 0; b--) m[a][b] = x[a] * x[b];",
        f"{ALL} for (int b = 0; b <= 3; b++) s += m[b][a] * (a + 1);",
    ),
    "up_to_a_number": (
        "double t[9]; for (int a = 0; a < n; a++) t[a] = x[a];",
        "for (int a = 0; a < n; a++) s += t[a] * t[a];",
    ),
    "element_by_element": (
        "double t[3]; t[0] = x[0]; t[2] = x[1]; t[1] = 2;",
        "for (int a = 0; a < 3; a++) s += t[a] * t[a];",
    ),
    "the_one_before": (
        "double t[4];",
        f"{ALL} {{ t[a] = 1; for (int b = 0; b < 4; b++) t[a] += t[a] * x[b]; s += t[a]; }}",
    ),
    "copies": ("struct v { double m[4]; } u, w; memcpy(&u, x, 32); w = u;", f"{ALL} s += w.m[a] * u.m[a];"),
    "columns": (f"double m[4][2]; {ALL} m[a][0] = x[a]; {ALL} m[a][1] = 1;", f"{ALL} s += m[a][0] * m[3 - a][1];"),
}
WRONG = {
    "one_less": ("double t[4]; for (int a = 0; a < 3; a++) t[a] = x[a];", f"{ALL} s += t[a] * t[a];"),
    "one_later": ("double t[4]; for (int a = 1; a < 4; a++) t[a] = x[a];", f"{ALL} s += t[a] * t[a];"),
    "every_second": ("double t[4]; for (int a = 0; a < 4; a += 2) t[a] = x[a];", f"{ALL} s += t[a] * t[a];"),
    "not_always": (f"double t[4]; {ALL} if (x[a] != p) t[a] = x[a];", f"{ALL} s += t[a] * t[a];"),
    "until_a_break": (f"double t[4]; {ALL} {{ if (a == p) break; t[a] = x[a]; }}", f"{ALL} s += t[a] * t[a];"),
    "diagonal": (f"double m[4][4]; {ALL} m[a][a] = x[a];", f"{ALL} for (int b = 0; b < 4; b++) s += m[a][b] * 2;"),
    "triangle": (
        f"double m[4][4]; {ALL} for (int b = 0; b <= a; b++) m[a][b] = x[a];",
        f"{ALL} for (int b = 0; b < 4; b++) s += m[a][b] * 2;",
    ),
    "up_to_another_number": (
        "double t[9]; for (int a = 0; a < n - 1; a++) t[a] = x[a];",
        "for (int a = 0; a < n; a++) s += t[a] * t[a];",
    ),
    "up_to_nothing": (
        "double m[4][4]; for (int b = 0; b < p - 2; b++) { " + ALL + " m[a][0] = x[a]; }",
        f"{ALL} s += m[a][0] * 2;",
    ),
    "another_row": (
        f"double m[9][4]; {ALL} m[n][a] = x[a];",
        f"{ALL} s += m[n - 1][a] * 2;",
    ),
    "halves": ("double t[4]; int *h = (int *)t; " + ALL + " h[2 * a] = 1;", f"{ALL} s += t[a] * 2;"),
    "behind_the_read": ("double t[4];", f"{ALL} {{ s += t[a] * 2; t[a] = 1; }}"),
    "new_in_each_iteration": (
        "",
        f"{ALL} {{ double t[2]; if (!a) t[0] = t[1] = 1; for (int b = 0; b < 2; b++) s += t[b] * 2; }}",
    ),
    "moved": (f"double t[4], u[4]; if (p > 2) {ALL} u[a] = x[a]; {ALL} t[a] = u[a];", f"{ALL} s += t[a] * t[a];"),
    "copied": (
        "struct v { double m[4]; } u, w; for (int a = 0; a < 3; a++) u.m[a] = x[a]; w = u;",
        f"{ALL} s += w.m[a] * 2;",
    ),
    "moved_around": (
        f"double t[4], u[4]; u[p] = 1; {ALL} t[a] = u[a]; {ALL} u[a] = t[3 - a];",
        f"{ALL} s += u[a] * 2;",
    ),
    "the_one_behind": ("double t[5]; t[0] = 1;", f"{ALL} {{ t[a] = 1; s += t[a + 1] * 2; }}"),
}
CASES = RIGHT | WRONG
SOURCE = "#include <string.h>\n" + "\n".join(
    f"double {name}(int n, int p, const double *x) {{ double s = 0; {start}\n{body} return s; }}"
    for name, (start, body) in CASES.items()
)


def _kernel(name: str, sanitize: bool) -> je.Kernel:
    options = je.Options(sanitize=sanitize)
    return je.kernel(SOURCE, name, "n: i32, p: i32, x: f64[n] -> f64", lang="c", options=options)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_certain_is_looked_at(name: str) -> None:
    line = 2 + SOURCE.splitlines().index(next(row for row in SOURCE.splitlines() if row.startswith(f"double {name}(")))
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"reads what nothing wrote.*\(kernel\.c:{line}\b"):
        jax.block_until_ready(_kernel(name, True)(2, X))


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_certain_costs_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    whole = outside.sanitized

    def kept(*given: object) -> object:
        result = whole(*given)  # type: ignore[arg-type]
        made.append(to_text(result.module))
        return result

    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", "")
    monkeypatch.setattr(outside, "sanitized", kept)
    np.testing.assert_array_equal(_kernel(name, True)(2, X), _kernel(name, False)(2, X))
    own = made[0][made[0].index("@je.primal(") :]
    assert "call i64 @je_checked_noted" not in own[: own.index("\n}")]
    assert "local variable `t`, index" not in made[0] and "local variable `m`, index" not in made[0]
