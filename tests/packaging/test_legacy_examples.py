"""The examples that wrap public codes from their sources, which pip downloads: skipped where it cannot."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.support.tools import need

LEGACY = Path(__file__).resolve().parents[2] / "examples" / "legacy"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(file.stem for file in LEGACY.glob("*.py") if file.stem != "sdist"))
def test_sources_from_a_registry(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "airy":
        need("flang-22")
    monkeypatch.syspath_prepend(LEGACY)
    monkeypatch.delitem(sys.modules, "sdist", raising=False)
    try:
        runpy.run_path(str(LEGACY / f"{name}.py"))
    except sys.modules["sdist"].DownloadError as error:
        pytest.skip(f"not run, as its sources are not there: {error}")
    assert capsys.readouterr().out


def test_sources_that_are_not_there_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LEGACY)
    monkeypatch.delitem(sys.modules, "sdist", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(LEGACY))
    import sdist  # pyright: ignore[reportMissingImports]

    with pytest.raises(sdist.DownloadError, match="gsw==3"), sdist.sources("gsw==3.6.20"):
        pass
