"""What the tests of this folder share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(sum(request.node.name.encode()))
