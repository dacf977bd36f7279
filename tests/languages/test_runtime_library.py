"""Our own sources of run-time libraries: each compiles, and has what it says it provides."""

from __future__ import annotations

import re

import pytest

from jax_enzyme.frontends import runtime_library

NAMES = sorted(runtime_library._sources())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_provided_is_defined(name: str) -> None:
    ir = runtime_library._compiled(name)
    defined = re.findall(r'^define [^@\n]*@"?([^"(\n]*)"?\(', ir, re.M)
    assert any(runtime_library.provides(function) for function in defined)
    promised = re.findall(r"^// provides: (.*)$", runtime_library._sources()[name], re.M)
    for pattern in " ".join(promised).split():
        assert any(re.fullmatch(pattern, function) for function in defined), pattern
