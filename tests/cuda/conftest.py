"""The libraries that stand in for NVIDIA's driver and AMD's, one per process each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jax_enzyme.xla_ffi import gpu
from tests.support.stand_in_driver import StandIn, is_driver_there, launching


@pytest.fixture(scope="session")
def stand_in_library(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    if is_driver_there():
        pytest.skip("NVIDIA's driver is here: `make gpu-test` runs this for real")
    return StandIn(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def stand_in(stand_in_library: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The library, nothing noted yet."""
    monkeypatch.setattr(gpu, "make_code", stand_in_library.make_code)
    stand_in_library.library.stand_in_forget()
    return stand_in_library


@pytest.fixture
def gpu_launches(stand_in_library: StandIn) -> Iterator[StandIn]:
    """Kernels of the test are launched by the library."""
    with launching(stand_in_library) as library:
        yield library


@pytest.fixture(scope="session")
def amd_library(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    if is_driver_there("libamdhip64.so.6"):
        pytest.skip("AMD's driver is here")
    return StandIn(tmp_path_factory.mktemp("hip"), amd=True)


@pytest.fixture
def amd_launches(amd_library: StandIn) -> Iterator[StandIn]:
    """Kernels of the test are code objects, launched by the library."""
    with launching(amd_library) as library:
        yield library
