"""Compilers that some tests need."""

from __future__ import annotations

import os
import shutil

import pytest


def need(tool: str, found: bool | None = None) -> None:
    """Skips a test, by name of the tool, where it is missing; in continuous integration that is a failure. `found` says
    whether it is there, for a tool that need not be on PATH."""
    if shutil.which(tool) is not None if found is None else found:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{tool} is missing: .ci/run installs it")
    pytest.skip(f"needs {tool}")
