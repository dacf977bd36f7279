"""Compilers that some tests need."""

from __future__ import annotations

import os
import shutil

import pytest


def need(tool: str) -> None:
    """Skips a test, by name of the tool, where it is missing; in continuous integration that is a failure."""
    if shutil.which(tool) is not None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{tool} is missing: .ci/run installs it")
    pytest.skip(f"needs {tool}")
