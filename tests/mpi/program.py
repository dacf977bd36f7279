"""What each process of `test_mpi.py` runs: kernels that call MPI against the same function of all processes' arrays."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

import jax_enzyme as je
from tests.support.xla import compile_without_optimising

jax.config.update("jax_enable_x64", True)

SOURCE = Path(__file__).parent / "kernels.c"
COMPLETION = SOURCE.with_name("completion.c")
OF_COMPLETION = (
    *("asked", "parts", "blocks", "rings", "columns_again", "begun", "begun_parts"),
    *(
        "crossed",
        "located",
        "located_before",
        "tiles",
        "filed",
        "written",
        "late",
        "neighbours",
        "combined",
        "buffered",
        "mixed",
    ),
)
N = 5


class Compiled(Exception):
    """Nothing is to be run."""


class Processes:
    """The MPI whose library has this name, and whose header is in `include`, as kernels ask for it. `dry`: kernels are
    compiled only."""

    def __init__(self, library: str, include: str, dry: bool) -> None:
        self._library = library
        self._include = include
        self.is_dry = dry
        self.rank = self._asked("rank")
        self.size = self._asked("size")

    def kernel(
        self, name: str, signature: str = "n: i32, x: f64[n], out y: f64[n]", threads: int | None = None
    ) -> je.Kernel:
        if name.startswith("fortran"):
            signature = signature.replace("n: i32", "n: i32[]")
            return je.kernel(SOURCE.with_suffix(".f90"), name, signature, libraries=self._library)
        source = COMPLETION if name in OF_COMPLETION else SOURCE
        flags = (f"-I{self._include}", *(["-fopenmp"] if threads else []))
        options = je.Options(threads=threads)
        return je.kernel(source, name, signature, flags=flags, libraries=self._library, options=options)

    def compiled(self, function: Callable[..., object], *arguments: object) -> Callable[..., object]:
        """The function for such arguments. It ends here, and is in the cache for others, where nothing is to be run."""
        made = jax.jit(function).lower(*arguments).compile()
        if self.is_dry:
            raise Compiled
        return made

    def _asked(self, what: str) -> int:
        source = f"#include <mpi.h>\nvoid ask(int *n) {{ MPI_Comm_{what}(MPI_COMM_WORLD, n); }}"
        flags = (f"-I{self._include}",)
        return int(je.kernel(source, "ask", "out n: i32[]", lang="c", flags=flags, libraries=self._library)())


def heat(x: jax.Array, steps: int = 6) -> jax.Array:
    def step(_: int, u: jax.Array) -> jax.Array:
        wide = jnp.pad(u, 1)
        return u + 0.2 * (wide[:-2] - 2 * u + wide[2:]) - 0.01 * u**3

    return lax.fori_loop(0, steps, step, x.reshape(-1)).reshape(x.shape)


def pipeline(x: jax.Array) -> jax.Array:
    return lax.scan(lambda before, own: (before * 0.5 + own**2,) * 2, jnp.zeros(x.shape[1]), x)[1]


def in_place(x: jax.Array) -> jax.Array:
    return jnp.broadcast_to((x**2).sum(0), x.shape)


def gathered(x: jax.Array) -> jax.Array:
    ranks = jnp.arange(1, x.shape[0] + 1)[:, None]
    return ranks * (x**3).sum(0) * jnp.roll(x, -1, axis=0)


def uneven(x: jax.Array) -> jax.Array:
    y = x * x[-1, 0]
    return jnp.where(jnp.arange(x.shape[1]) <= jnp.arange(x.shape[0])[:, None], y**2, y)


def exchanged(x: jax.Array) -> jax.Array:
    sums = jnp.stack(
        [jnp.where(jnp.arange(x.shape[1]) <= r, jnp.roll(x, -(r % 2), 1).sum(0), 0) for r in range(len(x))]
    )
    return sums**2 + x


def halos(x: jax.Array) -> jax.Array:
    wide = jnp.pad(x.reshape(-1), 1)
    return (x**2).sum() * x + (wide[:-2] * wide[2:]).reshape(x.shape)


def prefixes(x: jax.Array) -> jax.Array:
    upto = jnp.cumsum(x**2, axis=0)
    last = x[-1, : x.shape[0]][:, None]
    return upto * x + (upto - x**2) * last


def rotate(x: jax.Array) -> jax.Array:
    return jnp.roll(jnp.sin(x), 1, axis=0) * x


def rooted(x: jax.Array) -> jax.Array:
    y = jnp.roll(x[1] ** 2 * x, 2, axis=1)
    return y.at[1].multiply(y.sum(0))


def sums(x: jax.Array) -> jax.Array:
    return jnp.exp(x).sum(0) * x


def columns(x: jax.Array) -> jax.Array:
    return jnp.roll(x**2, 1, axis=0) * x + jnp.roll(x, -1, axis=0) ** 3


def records(x: jax.Array) -> jax.Array:
    before = jnp.roll(x, 1, axis=0)
    return before * jnp.where(jnp.array([True, False, True, True, False]), before**2, x)


def others(x: jax.Array) -> jax.Array:
    e = jnp.exp(x)
    return e.prod(0) * x + e.max(0) * e.min(0) * x**2


def kinds(x: jax.Array) -> jax.Array:
    z = x.sum(0) + 1j * (x**2).sum(0)
    return (z * z).imag * x + x.max(0) * x**2


def asked(x: jax.Array) -> jax.Array:
    y = jnp.roll(x, 1, axis=0) ** 2 + 2 * jnp.roll(x, -1, axis=0) ** 2
    return y * x + jnp.roll(y, 1, axis=0) ** 2


def begun(x: jax.Array) -> jax.Array:
    turned = x.T[: len(x)][:, jnp.arange(x.shape[1]) % len(x)] * x.sum(0)[: len(x), None]
    return ((x**2).sum(0) * x[0] * x**2 + turned * jnp.roll(x, 1, axis=0) * x[-1]).at[0].add(x.sum(0))


def begun_parts(x: jax.Array) -> jax.Array:
    i, r = jnp.arange(x.shape[1]), jnp.arange(len(x))
    has = i <= r[:, None]
    got = jnp.where(has[:, None], x[:, jnp.minimum(r[:, None] + i, x.shape[1] - 1)], 0).sum(0)
    sums = x.sum(0)[(r[:, None] * (r[:, None] + 1) // 2 + i) % x.shape[1]]
    alone = jnp.where(has, (x * x[-1, 0]) ** 2 + sums**2, 0)
    return alone + x * (jnp.where(has, x**2, 0).sum(0) + got) + jnp.where(has, x, 0).sum(0)


def located(x: jax.Array) -> jax.Array:
    last = jnp.arange(x.shape[1]) == x.shape[1] - 1
    value = jnp.where(last, 2, x**2)
    most, least = (jnp.where(last, 10, 10 * (best(value, axis=0) + 1)) for best in (jnp.argmax, jnp.argmin))
    return (value.max(0) * x * most).at[0].add(value.min(0) * x[0] * least)


def located_before(x: jax.Array) -> jax.Array:
    v = x**2
    place = jnp.stack([jnp.argmax(v[: r + 1], axis=0) + 1 for r in range(len(x))])
    before = jnp.concatenate([jnp.zeros((1, x.shape[1])), lax.cummin(v, axis=0)[:-1]])
    return lax.cummax(v, axis=0) * place + before * x


def columns_again(x: jax.Array) -> jax.Array:
    column, y = x**2, x
    for _ in range(3):
        came = jnp.roll(column, 1, axis=0)
        column, y = came * x, y + came**2 * x
    return y * jnp.roll(column, 1, axis=0) + x[-1, 0]


def parts(x: jax.Array) -> jax.Array:
    before = jnp.concatenate([jnp.ones((1, x.shape[1])), jnp.cumprod(x, axis=0)[:-1]])
    own, last = x.prod(0)[: len(x), None], x.sum(0)[: len(x), None]
    return lax.cummax(x**2, axis=0) * x + before * own + last**2


def blocks(x: jax.Array) -> jax.Array:
    which = jnp.arange(x.shape[1]) % len(x)
    return x * x[-1, which] ** 2 * x.T[: len(x)][:, which]


def tiles(x: jax.Array) -> jax.Array:
    i, r = jnp.arange(x.shape[1]) % (2 * len(x)), jnp.arange(len(x))[:, None]
    y = (x**2)[::-1] * x + 24 * x.T.reshape(-1)[2 * r + i % 2] * x[i // 2, 0]
    return y.at[0].add(y[-1])


def neighbours(x: jax.Array) -> jax.Array:
    i, r, before = jnp.arange(x.shape[1]), jnp.arange(len(x))[:, None], jnp.roll(x, 1, axis=0)
    low = jnp.where(r > 0, before[:, :1] ** 2, x[:, 1:2])
    high = jnp.where(r + 1 < len(x), jnp.roll(x, -1, axis=0)[:, :1] ** 2, x[:, 2:3])
    came = jnp.concatenate([before[:, 1:2], x[:, 3:4], before[:, :2]], axis=1)
    return x * jnp.concatenate([low, high], axis=1)[:, i % 2] + came[:, i % 4] * x[:, 4:5]


def combined(x: jax.Array) -> jax.Array:
    def then(before: tuple[jax.Array, jax.Array], after: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return before[0] * after[0], before[1] * after[0] + after[1]

    a, b = lax.associative_scan(then, (x[:, :4:2], x[:, 1:4:2]), axis=0)
    upto, norms = jnp.stack([a, b], axis=2).reshape(len(x), 4), jnp.sqrt((x**2).sum(0))
    factors = norms[0] * norms[jnp.arange(len(x)) % x.shape[1], None] + x[:, 0].sum()
    return x * upto[:, jnp.arange(x.shape[1]) % 4] + factors * x


def buffered(x: jax.Array) -> jax.Array:
    sums, odd = x.sum(0), jnp.arange(len(x))[:, None] % 2 == 1
    return jnp.roll(x, 1, axis=0) ** 3 + jnp.where(odd, sums[1] * sums[3], sums[0] * sums[1]) * x


def mixed(x: jax.Array) -> jax.Array:
    i = jnp.arange(x.shape[1])
    y = -2 * (x**2 * jnp.where(i % 2, -1, 1) * (i + 1))[:, ::-1]
    total = y.sum()
    y = 0.1 * total * x + x[0] * y
    total = total + y.sum() / len(x)
    return 0.1 * total * x + x[0] * y


WHOLE: dict[str, Callable[[jax.Array], jax.Array]] = {
    "pipeline": pipeline,
    "heat": heat,
    "persistent": heat,
    "two_begun": lambda x: jnp.roll(x**2 * jnp.sin(x), -1, axis=0) + x,
    "columns": columns,
    "rooted": rooted,
    "records": records,
    "by_the_first": lambda x: x**3 * x[0],
    "others": others,
    "kinds": kinds,
    "in_place": in_place,
    "gathered": gathered,
    "uneven": uneven,
    "exchanged": exchanged,
    "prefixes": prefixes,
    "asked": asked,
    "parts": parts,
    "blocks": blocks,
    "rings": lambda x: x[-1] ** 2 * jnp.roll(x, -1, axis=0) * x,
    "begun": begun,
    "begun_parts": begun_parts,
    "located": located,
    "located_before": located_before,
    "columns_again": columns_again,
    "tiles": tiles,
    "neighbours": neighbours,
    "combined": combined,
    "buffered": buffered,
    "mixed": mixed,
    "late": lambda x: jnp.concatenate([x[:1], x[:1], x[2:]]) ** 2,
    "filed": lambda x: (10 * jnp.roll(jnp.arange(len(x)), 1)[:, None] + jnp.arange(x.shape[1])) * x**2,
    "fortran": halos,
    "fortran_types": columns,
    "fortran_any": lambda x: jnp.roll(x, 1, axis=0) ** 2 * x + x.prod(0)[: len(x), None] + x[0, 0] * x[-1, :1],
    "fortran_packed": lambda x: (
        3 * jnp.roll(x**2, 1, axis=0) * x + (jnp.roll(jnp.arange(len(x)), 1)[:, None] - 5) * jnp.sin(x)
    ),
    "fortran_combined": lambda x: jnp.sqrt((x**2).sum(0)) * x,
    "fortran_begun": lambda x: jnp.exp(x).sum() * x[0] * x.sum(0) * jnp.ones_like(x),
    "fortran_located": lambda x: 3 * x.min(0) ** 3 * x,
    "fortran_totals": lambda x: (x**2).sum() * x * jnp.roll(x, 1, axis=0),
}


def close(found: object, expected: object) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-11, atol=1e-12)


def check(processes: Processes, name: str) -> None:
    """Value, forward and reverse derivative."""
    whole, rank = WHOLE[name], processes.rank
    signature = "n: i32, steps: i32, x: f64[n], out y: f64[n]" if whole is heat else "n: i32, x: f64[n], out y: f64[n]"
    kernel = processes.kernel(name, signature)
    own = (lambda x: kernel(6, x)) if whole is heat else kernel

    def derived(f: Callable[[jax.Array], jax.Array], x: jax.Array, t: jax.Array, w: jax.Array) -> object:
        y, pull = jax.vjp(f, x)
        return y, jax.jvp(f, (x,), (t,))[1], pull(w)[0]

    at = np.random.default_rng(len(name)).uniform(0.3, 1.2, (3, processes.size, N))
    ours = processes.compiled(lambda *at: derived(own, *at), *at[:, rank])
    for found, expected in zip(ours(*at[:, rank]), jax.jit(lambda *at: derived(whole, *at))(*at), strict=True):
        close(found, expected[rank])


def check_transformations(processes: Processes) -> None:
    """Two kernels in one program, in any of JAX's control flow, in the order of the program and once each."""
    rank, size = processes.rank, processes.size
    turn, total = processes.kernel("rotate"), processes.kernel("sums")
    x = np.random.default_rng(3).uniform(0.3, 1.2, (size, N))

    def program(x: jax.Array, turn: Callable[..., jax.Array], total: Callable[..., jax.Array]) -> jax.Array:
        def step(x: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
            total(x)  # nobody reads it: other processes wait for it all the same
            moved = lax.cond(scale > 1, turn, lambda x: total(x) * 0.1, x)
            return moved * scale, moved.sum()

        last, each = lax.scan(step, x, jnp.array([0.5, 1.5, 0.7]))
        return (last**2).sum() + each.sum()

    def whole(x: jax.Array) -> jax.Array:
        return program(x, rotate, sums)

    def own(x: jax.Array) -> jax.Array:
        return program(x, turn, total)

    expected = jax.jit(jax.grad(whole))(x)[rank]
    compiled = processes.compiled(jax.grad(own), x[rank])
    for gradient in (compiled, compiled, jax.grad(own)):
        close(gradient(x[rank]), expected)
    batch = np.stack([x, x * 0.9, x * 0.8])
    close(
        jax.jit(jax.vmap(jax.grad(lambda x: total(turn(x)).sum())))(batch[:, rank]),
        jax.jit(jax.vmap(jax.grad(lambda x: sums(rotate(x)).sum())))(batch)[:, rank],
    )

    # The second derivative, forward over reverse.
    @partial(jax.jit, static_argnums=0)
    def second(f: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
        return jax.jvp(jax.grad(f), (x,), (jnp.cos(x),))[1]

    turned = second(lambda x: (sums(x) ** 2).sum(), x)[rank]
    close(second(lambda x: (total(x) ** 2).sum(), x[rank]), turned)
    # Each process has its own row of the Jacobian of all results, by all processes' directions.
    close(
        jax.jit(jax.jacfwd(total))(x[rank]),
        jax.jit(jax.vmap(lambda t: jax.jvp(sums, (x,), (jnp.tile(t, (size, 1)),))[1][rank]))(np.eye(N)).T,
    )


def check_again(processes: Processes) -> None:
    """Second derivatives through requests, forward over reverse and reverse over forward."""
    rank = processes.rank
    for name in ("two_begun", "begun", "persistent"):
        whole = WHOLE[name]
        steps = "steps: i32, " if whole is heat else ""
        kernel = processes.kernel(name, f"n: i32, {steps}x: f64[n], out y: f64[n]")
        own = (lambda x, f=kernel: f(3, x)) if whole is heat else kernel
        whole = (lambda x: heat(x, 3)) if whole is heat else whole

        def twice(f: Callable[[jax.Array], jax.Array], x: jax.Array, t: jax.Array, w: jax.Array) -> object:
            turned = jax.jvp(lambda x: jax.vjp(f, x)[1](w)[0], (x,), (t,))[1]
            return turned, jax.vjp(lambda x: jax.jvp(f, (x,), (t,))[1], x)[1](w)[0]

        at = np.random.default_rng(5).uniform(0.3, 1.2, (3, processes.size, N))
        ours = jax.jit(lambda *at, f=own: twice(f, *at)).lower(*at[:, rank]).compile()
        if processes.is_dry:
            continue
        for found, expected in zip(ours(*at[:, rank]), jax.jit(lambda *at, f=whole: twice(f, *at))(*at), strict=True):
            close(found, expected[rank])
    if processes.is_dry:
        raise Compiled


def check_refused(processes: Processes) -> None:
    for name in ("bytes", "one_sided", "written"):
        kernel = processes.kernel(name)
        try:
            jax.vjp(kernel, np.ones(N))[1](np.ones(N))
        except je.DifferentiationError as error:
            assert "MPI" in str(error) and ".c:" in str(error), error
        else:
            raise AssertionError(f"{name} was differentiated")


def check_failure(processes: Processes) -> None:
    kernel = processes.kernel("fails", "n: i32, x: f64[n], out y: f64[n] -> status")
    jax.block_until_ready(processes.compiled(jax.grad(lambda x: kernel(x).sum()), np.ones(N))(np.ones(N)))


def check_crossed(processes: Processes) -> None:
    kernel = processes.kernel("crossed")
    jax.block_until_ready(processes.compiled(jax.grad(lambda x: kernel(x).sum()), np.ones(N))(np.ones(N)))


def check_nowhere(processes: Processes) -> None:
    processes.kernel("nowhere")(np.ones(N))


def check_stuck(processes: Processes) -> None:
    kernel = processes.kernel("stuck")
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    jax.block_until_ready(kernel(np.ones(N)))


def check_threads(processes: Processes) -> None:
    """Two threads may run a kernel that calls MPI, and its gradient, where two are named; loops that call MPI, one."""
    x = np.linspace(0.2, 1.0, N)
    both, alone = (processes.kernel("rows", threads=threads) for threads in (2, 1))
    report = both.inspect(x)
    loops = report.loops
    primal = [verdict.partition(": ")[2] for which, verdict in loops if which == "primal"]
    assert primal == ["on several threads", "on one thread: it calls `MPI_Sendrecv`"], primal
    assert not any("calls `je" in verdict for _, verdict in loops), loops
    assert "no rule" not in {call.verdict for call in report.calls}, report.calls
    np.testing.assert_array_equal(both(x), alone(x))
    np.testing.assert_array_equal(jax.jacrev(both)(x), jax.jacrev(alone)(x))


def check_error(processes: Processes) -> None:
    """An exception of Python's on one process, while the other waits in a kernel."""
    if processes.rank == 0:
        raise ValueError("of one process")
    processes.kernel("sums")(np.ones(N))


OTHERS = {
    "transformations": check_transformations,
    "again": check_again,
    "refused": check_refused,
    "crossed": check_crossed,
    "fails": check_failure,
    "stuck": check_stuck,
    "nowhere": check_nowhere,
    "threads": check_threads,
    "error": check_error,
}


def main() -> None:
    library, include, how, *names = sys.argv[1:]
    compile_without_optimising()
    processes = Processes(library, include, how == "compile")
    for name in names:
        try:
            OTHERS[name](processes) if name in OTHERS else check(processes, name)
        except Compiled:
            continue
        print(f"{name} is right on {processes.rank} of {processes.size}", flush=True)


if __name__ == "__main__":
    main()
