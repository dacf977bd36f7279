"""The pages under docs: their Python runs as it stands there, what they show of it is so, and each of them is in the
list of pages."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jax_enzyme as je

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
WITH_CODE = [page for page in PAGES if "```python" in page.read_text("utf-8")]

C = "void step(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }"
NORM = """
#include <math.h>
static double mag(int n, const double *x) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}
void norm(int n, const double *x, double *y) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) y[i] = x[i] / mag(n, x);
}
"""
CUDA = """__global__ void step(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}"""


def names_on(page: str) -> dict[str, Any]:
    """What the text of a page has said before its code."""
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "je": je}
    if page == "jax":
        kernel = je.kernel(C, "step", "n: i32, x: f32[n], out y: f32[n]", lang="c")
        names |= {"kernel": lambda x: kernel(x).sum(), "x": jnp.ones(3, jnp.float32), "loss": kernel}
    if page == "parallel":
        names["x"] = jnp.arange(1.0, 9.0)
    if page == "frameworks":
        import numpyro
        import numpyro.distributions

        names |= {"numpyro": numpyro, "dist": numpyro.distributions}
    return names


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "step.c").write_text(C)
    (tmp_path / "norm.c").write_text(NORM)
    (tmp_path / "step.cu").write_text(CUDA)
    shutil.copytree(ROOT / "examples" / "orbit", tmp_path / "orbit")
    monkeypatch.chdir(tmp_path)
    before = dict(jax.config.values)
    names = names_on(page.stem)
    try:
        for kind, code in re.findall(r"```(python|llvm|text)\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            if kind == "python":
                exec(compile(code, str(page), "exec"), names)
            elif page.stem == "one-gradient":
                assert shown(code, names["text"]), f"not so:\n{code}\nbut:\n{names['text']}"
    finally:
        for name, value in before.items():
            if jax.config.values[name] != value:
                jax.config.update(name, value)


def shown(extract: str, text: str) -> bool:
    """Whether the lines of an extract begin lines of a text, in this order; `...` stands for whatever is left out."""
    left = iter(text.splitlines())
    wanted = [line.strip() for line in extract.splitlines() if line.strip() != "..."]
    patterns = [".*".join(re.escape(part.strip()) for part in line.split("...")) for line in wanted]
    return all(any(re.match(pattern, line.strip()) for line in left) for pattern in patterns)


def test_every_page_is_listed() -> None:
    listed = set(re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / "README.md").read_text("utf-8")))
    assert {page.name for page in PAGES} - {"README.md"} <= listed
    assert all((ROOT / "docs" / link).exists() for link in listed)


@pytest.mark.parametrize("package", ["analysis", "ad", "transform"])
def test_the_design_names_every_file(package: str) -> None:
    named = set(re.findall(r"(\w+)(?:\.py)?`", (ROOT / "docs" / "design.md").read_text("utf-8")))
    assert [m for m in (ROOT / "jax_enzyme" / package).rglob("[a-z]*.py") if m.stem not in named] == []
