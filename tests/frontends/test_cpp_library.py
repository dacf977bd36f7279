"""libc++'s own binary: how it is made."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from jax_enzyme.frontends import cpp_library


def test_few_units_read_the_headers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each of the library's files is compiled once, most of them as one: their headers take longer than they do."""
    ran: list[tuple[str, ...]] = []

    def run(words: tuple[str, ...], _: Path) -> CompletedProcess[str]:
        ran.append(words)
        return CompletedProcess(words, 0)

    monkeypatch.setattr(cpp_library, "run", run)
    vars(cpp_library)["_made"](tmp_path)
    units = [Path(word).read_text() for words in ran for word in words if word.endswith(".cpp")]
    files = [Path(name) for unit in units for name in re.findall('"(.+)"', unit)]
    assert len(units) == 3
    assert len({*files}) == len(files) == 27
    assert all(file.is_file() for file in files)
