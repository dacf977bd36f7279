"""C and C++ over their standard libraries, whose bodies are partly in binaries that no front end sees."""

from __future__ import annotations

import numpy as np
import pytest

from tests.languages.conftest import KERNELS, check
from tests.support.engine import native

VECTOR = "n: i32, x: f64[n], out y: f64[n]"
X = np.array([0.9, 0.4, 1.3, 0.7, 1.1])
C = ("sorted_numbers", "sorted_structs", "sorted_indices", "searched")
CPP = (
    "sorted sorted_stably selected vectors nested_vectors complex_numbers value_arrays "
    "virtual_functions caught static_table expression_templates with_string containers permuted heap_order sum_types"
).split()


@pytest.mark.parametrize("name", C)
def test_c(name: str) -> None:
    check("sorting.c", name, "c", VECTOR, {"n": 5}, [X])


@pytest.mark.parametrize("name", CPP)
def test_cpp(name: str) -> None:
    check("library.cpp", name, "c++", VECTOR, {"n": 5}, [X], flags=("-std=c++20",))


def test_qsort_is_stable_and_sorts() -> None:
    source = (KERNELS / "sorting.c").read_text()
    values = np.round(np.random.default_rng(0).uniform(0, 9, 257)) + 0.5
    kernel = native(source, "sorted_structs", VECTOR, {"n": 257})
    (result,) = kernel.run((), [values])
    order = np.argsort(values**2, kind="stable")
    np.testing.assert_allclose(result, (values**2)[order] * np.arange(1, 258) + values[order])
