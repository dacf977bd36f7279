"""A failed assertion of LLVM's ends a run of passes, not the process."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading

import pytest

from jax_enzyme.codegen.optimise import object_code
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import _guarded, pass_managers, passes
from jax_enzyme.ir.reader import parse

_SOURCE = "define double @f(double %x) {\n  %y = fmul double %x, %x\n  ret double %y\n}\n"


def _abort(function: str = "abort") -> bool:
    return _guarded.call(ctypes.cast(getattr(ctypes.CDLL(None), function), ctypes.c_void_p).value or 0, 0, 0, 0)


def test_what_aborts_returns() -> None:
    assert [_abort(), _abort(), _abort("getpid")] == [False, False, True]
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(_abort()))
    thread.start()
    thread.join()
    assert found == [False]


_THROWN = """
import ctypes, os
from jax_enzyme.ir import _guarded
throw = ctypes.CDLL("libstdc++.so.6")._ZSt17__throw_bad_allocv
try:
    _guarded.call(ctypes.cast(throw, ctypes.c_void_p).value, 0, 0, 0)
except MemoryError:
    os.abort()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a function of libstdc++ that throws")
def test_an_abort_behind_an_exception_ends_the_process() -> None:
    ran = subprocess.run([sys.executable, "-c", _THROWN], timeout=60, capture_output=True, check=False)
    assert ran.returncode == -signal.SIGABRT


def _failing(monkeypatch: pytest.MonkeyPatch, runs: int) -> list[int]:
    """The first runs of passes abort; how many there are."""
    seen: list[int] = []

    def call(function: int, first: int, second: int, third: int) -> bool:
        seen.append(function)
        return _abort() if len(seen) <= runs else _guarded.call(function, first, second, third)

    monkeypatch.setattr(pass_managers, "_guarded", type("", (), {"call": staticmethod(call)}))
    return seen


@pytest.mark.parametrize("failures", [1, 2])
def test_code_is_made_again_without_vectorisers(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    """That of straight-line code first, then that of loops."""
    runs = _failing(monkeypatch, failures)
    code, _ = object_code(parse(_SOURCE), "f")
    assert code and len(runs) > failures


_LARGEST = """define double @f(ptr %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %most = phi double [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr inbounds double, ptr %x, i64 %i
  %own = load double, ptr %at
  %more = call double @llvm.maxnum.f64(double %most, double %own)
  %next = add nuw nsw i64 %i, 1
  %all = icmp eq i64 %next, 30
  br i1 %all, label %end, label %loop
end:
  ret double %more
}
declare double @llvm.maxnum.f64(double, double)
"""


def test_the_largest_of_few_numbers() -> None:
    """LLVM 22 reckons twice what that loop costs in vectors of AVX-512, and asserts that it finds the same."""
    code, _ = object_code(parse(_LARGEST), "f")
    assert code


def test_a_third_failure_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, 3)
    with pytest.raises(LoweringError, match="an assertion of its own failed"):
        object_code(parse(_SOURCE), "f")


def test_options_are_what_they_were_behind_a_run_that_an_exception_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*_: int) -> bool:
        raise MemoryError

    said: list[str] = []
    monkeypatch.setattr(pass_managers, "_guarded", type("", (), {"call": staticmethod(call)}))
    monkeypatch.setattr(pass_managers.llvm, "set_option", lambda _, text: said.append(text))
    with pytest.raises(MemoryError):
        passes.optimise(parse(_SOURCE), settings=pass_managers.PLACES_STAY)
    assert said[-1] == "-enable-pre=true"


def test_machine_code_of_long_blocks_takes_no_time_that_grows_with_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(pass_managers.llvm, "set_option", lambda _, text: said.append(text))
    quick = ["-enable-misched=false", "-disable-machine-cse=true"]
    usual = ["-enable-misched=true", "-disable-machine-cse=false"]
    for count, expected in ((1900, []), (2100, quick + usual)):
        said.clear()
        sums = "".join(f"  %s{n + 1} = fadd double %s{n}, %x\n" for n in range(count))
        text = f"define double @f(double %s0, double %x) {{\n{sums}  ret double %s{count}\n}}\n"
        code, _ = object_code(parse(text), "f")
        assert code
        assert [word for word in said if word in quick + usual] == expected


def test_single_passes_that_fail_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, 1)
    with pytest.raises(LoweringError, match="an assertion of its own failed"):
        passes.optimised_text(_SOURCE)
