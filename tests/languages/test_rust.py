"""Rust over its standard library."""

from __future__ import annotations

import numpy as np
import pytest

from tests.languages.conftest import check

NAMES = (
    "iterators growth bounds_checked boxed_closure nested number_methods options_and_chunks checked arrays_and_deques "
    "list_and_cells printed trait_objects sorted hash_maps formatted_errors operators layers "
    "cloned_formulas counted_tree behind_locks"
).split()
X = np.array([0.9, 0.4, 1.3, 0.7, 1.1])


@pytest.mark.parametrize("name", NAMES)
def test_rust(name: str) -> None:
    check("library.rs", name, "rust", "x: f64[n], n: i64, out y: f64[n]", {"n": 5}, [X])
