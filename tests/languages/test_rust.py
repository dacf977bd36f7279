"""Rust over its standard library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jax_enzyme as je
from tests.languages.conftest import check

NAMES = (
    "iterators growth bounds_checked boxed_closure nested number_methods options_and_chunks checked arrays_and_deques "
    "list_and_cells printed trait_objects pushed_trait_objects sorted hash_maps formatted_errors operators layers "
    "cloned_formulas counted_tree behind_locks texts_for_numbers names_and_bytes"
).split()
X = np.array([0.9, 0.4, 1.3, 0.7, 1.1])


@pytest.mark.parametrize("name", NAMES)
def test_rust(name: str) -> None:
    check("library.rs", name, "rust", "x: f64[n], n: i64, out y: f64[n]", {"n": 5}, [X])


@pytest.mark.parametrize(
    ("parameter", "signature", "message"),
    [
        ("x: *const f32", "x: f64[2] -> f64", r"`x` is f64\[2\].*`\*const f32`.*fn f\(x: \*const f32\) -> f64"),
        ("x: *const *const f64", "x: f64[2] -> f64", "leads to pointers"),
        ("x: *const Mixed", "x: f64[2] -> f64", "member `b` is `i32`"),
        ("x: *const f64", "out x: f64[2] -> f64", "where it cannot write"),
    ],
)
def test_signatures_that_differ(parameter: str, signature: str, message: str) -> None:
    mixed = "#[repr(C)] pub struct Mixed { a: f64, b: i32 }"
    source = f'{mixed}\n#[no_mangle] pub unsafe extern "C" fn f({parameter}) -> f64 {{ 0.0 }}'
    with pytest.raises(je.SignatureError, match=f"(?s){message}"):
        je.kernel(source, "f", signature, lang="rust")


def test_what_rustc_keeps_meanwhile_is_not_where_others_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that compiled in one folder had each other's functions."""
    monkeypatch.chdir(tmp_path)
    source = '#[no_mangle] pub extern "C" fn twice(x: f64) -> f64 { 2.0 * x }'
    kernel = je.kernel(source, "twice", "x: f64 -> f64", lang="rust", flags=("-Csave-temps",))
    assert kernel(1.5) == 3.0
    assert list(tmp_path.iterdir()) == []
