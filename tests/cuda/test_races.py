"""Races: what `je.check_races` finds in a run, and what is seen before anything runs."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.codegen.programs import shared_overlaps
from tests.cuda.cases import CASES, Case

ELEMENTWISE = "n: i32, x: f64[n], out y: f64[n]"
TOTAL = "n: i32, x: f64[n], out y: f64[1]"


def check(body: str, signature: str, block: int, *, grid: int = 1, flags: tuple[str, ...] = ()) -> je.RaceReport:
    source = f'extern "C" __global__ void k{body}'
    kernel = je.kernel(source, None, signature, lang="cuda", grid=grid, block=block, flags=flags)
    return je.check_races(kernel, [np.arange(1.0, 65.0)])


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_kernels_of_the_tests_have_no_race(case: Case) -> None:
    launch = case.launches[-1]
    kernel = je.kernel(
        str(case.path), None, case.signature, flags=launch.flags,
        grid=launch.grid, block=launch.block, shared=launch.shared,
    )  # fmt: skip
    inputs = case.inputs(np.random.default_rng(0))
    given = [inputs[p.name] for p in kernel.signature.caller_params]
    assert je.check_races(kernel, given).ok
    assert not shared_overlaps(kernel.program, kernel.signature, kernel.binding(given))


ROWS = """(int n, const double *x, double *y) {  // sums of rows of 64, one buffer for all rows
  __shared__ double part[2];
  int t = threadIdx.x, lane = t % 32;
  for (int row = 0; row < 4; row++) {
    double v = x[(64 * row + t) % n];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if (lane == 0) part[t / 32] = v;
    __syncthreads();
    y[t] += part[0] + part[1];
    END
  }
}"""
TILE = """(int n, const double *x, double *y) {
  __shared__ double s[2][64];
  int t = threadIdx.x;
  for (int k = 0; k < 6; k++) {
    s[PLACE][t] = x[(t + k) % n];
    __syncthreads();
    y[t] += s[PLACE][63 - t];
  }
}"""
DATA = """(int n, const double *x, double *y) {
  __shared__ double s[64];
  __shared__ int first;
  int t = threadIdx.x;
  if (t == 0) first = (int)x[0];
  s[t] = 0;
  __syncthreads();
  INDEX;
  __syncthreads();
  y[t] = s[t];
}"""


@pytest.mark.parametrize(
    ("body", "flags", "lines"),
    [
        ("REDUCTION", ("-DNO_FIRST",), {4, 9}),
        ("REDUCTION", ("-DNO_LATER",), {9}),
        ("REDUCTION", (), set[int]()),
        ("ROWS", ("-DEND=",), {7, 9}),
        ("ROWS", ("-DEND=__syncthreads();",), set[int]()),
        ("TILE", ("-DPLACE=0",), {5, 7}),
        ("TILE", ("-DPLACE=k%2",), set[int]()),
        ("WARPS", ("-DACROSS=32",), {4, 6}),
        ("WARPS", ("-DACROSS=1",), set[int]()),
        ("DATA", ("-DINDEX=s[(int)x[t]]+=1",), {8}),
        ("DATA", ("-DINDEX=atomicAdd(s+(int)x[t],1.0)",), set[int]()),
        ("DATA", ("-DINDEX=s[(first+t)%64]=1",), {8}),
        ("DATA", ("-DINDEX=s[first+t]=1",), set[int]()),
        ("DATA", ("-DINDEX=if(x[t]>0)s[t]=s[t]+1",), set[int]()),
        ("DATA", ("-DINDEX=for(int n=1;n<64;n*=4){s[t/n*n+t%n]=n;__syncthreads();}",), set[int]()),
        ("DATA", ("-DINDEX=if(t<8)s[first%8*8+t]=s[t]",), set[int]()),
        ("DATA", ("-DINDEX=if(t<8)s[first%8*8+t]=s[7-t]",), {8}),
        ("DATA", ("-DINDEX=if(t<8)s[first%8*8+t]=s[(int)x[t]%4*16+8+t]",), set[int]()),
        ("DATA", ("-DINDEX=if(t<8)s[first%8*8+t]=s[(int)x[t]%4*12+t]",), {8}),
        ("DATA", ("-DINDEX=if(x[t]>0)s[t]=s[63-t]+1",), {8}),
        ("DATA", ("-DINDEX=if(n>64)s[t]=1;else*s=1",), {8}),
    ],
)
def test_what_is_not_proved_apart_is_seen_before_anything_runs(
    body: str, flags: tuple[str, ...], lines: set[int]
) -> None:
    source = f'extern "C" __global__ void k{globals()[body]}'
    kernel = je.kernel(source, None, ELEMENTWISE, lang="cuda", grid=1, block=64, flags=flags)
    found = shared_overlaps(kernel.program, kernel.signature, kernel.binding([np.zeros(64)]))
    assert {int(n) for n in re.findall(r":(\d+):", " ".join(map(str, found)))} == lines


@pytest.mark.parametrize(
    ("index", "is_guessed"),
    [
        ("s[t]=s[63-t]+1", False),
        ("if(x[t]>0)s[t]=s[63-t]+1", True),
        ("for(int k=0;k<3;k++){if(x[t]>0)s[t]=s[63-t]+1;__syncthreads();}", True),
        ("if(x[t]>0)y[t]=1;s[t]=s[63-t]+1", False),
    ],
)
def test_it_is_said_where_data_decides_whether_threads_come_there(index: str, is_guessed: bool) -> None:
    source = f'extern "C" __global__ void k{DATA}'
    kernel = je.kernel(source, None, ELEMENTWISE, lang="cuda", grid=1, block=64, flags=(f"-DINDEX={index}",))
    (found,) = shared_overlaps(kernel.program, kernel.signature, kernel.binding([np.zeros(64)]))
    assert ("data decides" in str(found)) == is_guessed


def test_one_warning_when_a_kernel_is_built() -> None:
    source = 'extern "C" __global__ void k' + TILE
    kernel = je.kernel(source, None, ELEMENTWISE, lang="cuda", grid=1, block=64, flags=("-DPLACE=0",))
    with pytest.warns(je.RaceWarning, match=r"`k`.*:5:.*:7:.*je\.check_races") as caught:
        for _ in range(2):
            kernel(np.arange(64.0))
    assert [w.filename for w in caught if w.category is je.RaceWarning] == [__file__]


def test_kernels_that_a_host_function_launches() -> None:
    source = (
        f"__global__ void k{TILE} __global__ void other{TILE.replace('PLACE', 'k%2')}"
        + """
      void all(int n, const double *x, double *y) { other<<<1, 64>>>(n, x, y); k<<<n / 64, 64>>>(n, x, y); }"""
    )
    kernel = je.kernel(source, "all", ELEMENTWISE, lang="cuda", flags=("-DPLACE=0",))
    with pytest.warns(je.RaceWarning, match=r"kernels that `all` launches .*:5:.*:7:[0-9]* \(kernel `k`\)\. If"):
        kernel(np.arange(64.0))


REDUCTION = """(int n, const double *x, double *y) {
  __shared__ double s[64];
  int t = threadIdx.x;
  s[t] = x[t];
#ifndef NO_FIRST
  __syncthreads();
#endif
  for (int k = 32; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
#ifndef NO_LATER
    __syncthreads();
#endif
  }
  if (t == 0) y[0] = s[0];
}"""


def test_barriers_put_a_block_in_order() -> None:
    assert check(REDUCTION, TOTAL, 64).ok


@pytest.mark.parametrize(("missing", "lines"), [("NO_FIRST", {4, 9}), ("NO_LATER", {9})])
def test_a_missing_barrier_is_found(missing: str, lines: set[int]) -> None:
    with pytest.raises(je.RaceError, match="shared memory") as caught:
        check(REDUCTION, TOTAL, 64, flags=(f"-D{missing}",))
    races = caught.value.report.races
    assert {int(a.place.split(":")[1]) for r in races for a in (r.first, r.second)} == lines
    assert all("write" in (r.first.kind, r.second.kind) for r in races)


def test_two_blocks_that_add_without_atomics() -> None:
    with pytest.raises(je.RaceError, match=r"y\[0\]") as caught:
        check("(int n, const double *x, double *y) { y[0] += x[blockIdx.x]; }", TOTAL, 1, grid=3)
    (race,) = caught.value.report.races
    assert race.first.block != race.second.block


@pytest.mark.parametrize("added", ["atomicAdd(y, x[threadIdx.x])", 'asm("red.add.f64 [%0], %1;" :: "l"(y), "d"(*x))'])
def test_atomics_do_not_race_with_each_other(added: str) -> None:
    assert check(f"(int n, const double *x, double *y) {{ {added}; }}", TOTAL, 64).ok


def test_an_atomic_and_a_plain_write_race() -> None:
    body = "(int n, const double *x, double *y) { if (threadIdx.x) atomicAdd(y, x[0]); else y[0] = 1; }"
    with pytest.raises(je.RaceError, match="atomic update"):
        check(body, TOTAL, 64)


def test_neighbours_without_a_barrier() -> None:
    kernel = je.kernel(
        'extern "C" __global__ void k(int n, double *x) { int t = threadIdx.x; x[t] = x[(t + 1) % n] + 1; }',
        None, "n: i32, inout x: f64[n]", lang="cuda", grid=1, block="n",
    )  # fmt: skip
    with pytest.raises(je.RaceError, match=r"x\[\d+\]: write"):
        je.check_races(kernel, [np.zeros(8)])
    assert je.check_races(kernel, [np.zeros(1)]).ok


WARPS = """(int n, const double *x, double *y) {
  __shared__ double s[64];
  int t = threadIdx.x, other = t ^ ACROSS;
  s[t] = x[t];
  __syncwarp();
  y[t] = s[other];
}"""


def test_a_warp_operation_orders_one_warp_alone() -> None:
    assert check(WARPS, ELEMENTWISE, 64, flags=("-DACROSS=1",)).ok
    with pytest.raises(je.RaceError, match="shared memory"):
        check(WARPS, ELEMENTWISE, 64, flags=("-DACROSS=32",))


def test_memory_of_one_block_or_thread_is_its_own() -> None:
    body = """(int n, const double *x, double *y) {
      __shared__ double s[32];
      double own[4];
      int t = threadIdx.x, i = 32 * blockIdx.x + t;
      for (int k = 0; k < 4; k++) own[k] = x[(i + k) % n];
      s[t] = own[(int)x[i] % 4];
      __syncthreads();
      double *p = t % 2 ? s : own;
      y[i] = p[(int)x[i] % 4];
    }"""
    assert check(body, ELEMENTWISE, 32, grid=2).ok


@pytest.mark.parametrize("lines", ["if (t) s[t] = x[t];", ""])
def test_shared_memory_that_nothing_wrote(lines: str) -> None:
    body = f"""(int n, const double *x, double *y) {{
      __shared__ double s[64];
      int t = threadIdx.x;
      {lines}
      __syncthreads();
      y[t] = s[63 - t] + s[0];
    }}"""
    with pytest.raises(je.RaceError, match="that nothing wrote before: read by thread") as caught:
        check(body, ELEMENTWISE, 64)
    assert not caught.value.report.races
    assert {a.place.split(":")[1] for a in caught.value.report.unwritten} == {"6"}


def test_a_log_that_was_too_small_is_written_again() -> None:
    body = """(int n, const double *x, double *y) {
      double s = 0;
      for (int r = 0; r < 2000; r++) s += x[(threadIdx.x * r + r) % n];
      y[threadIdx.x] = s;
    }"""
    report = check(body, ELEMENTWISE, 64)
    assert report.accesses == 64 * 2001


def test_other_kernels_are_refused() -> None:
    kernel = je.kernel("void f(double *x, double *y) { *y = *x; }", None, "x: f64[], out y: f64[]", lang="c")
    with pytest.raises(je.SignatureError, match="no CUDA kernel"):
        je.check_races(kernel, [1.0])


def test_the_error_can_be_pickled() -> None:
    with pytest.raises(je.RaceError) as caught:
        check("(int n, const double *x, double *y) { y[0] = x[threadIdx.x]; }", TOTAL, 64)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.report == caught.value.report
    assert str(again) == str(caught.value)
