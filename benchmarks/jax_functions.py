"""The functions of the benchmark as one would write them in `jax.numpy`: from arguments by name to results by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, gammaln, logsumexp

Named = Mapping[str, Any]


def _gmm(a: Named) -> Named:
    (n, d), k = a["x"].shape, len(a["alphas"])
    gamma, m, logs, below = a["gamma"], a["m"], a["icf"][:, :d], a["icf"][:, d:]
    columns, rows = np.triu_indices(d, 1)
    factors = jnp.zeros((k, d, d)).at[:, rows, columns].set(below) + jnp.exp(logs)[:, :, None] * jnp.eye(d)
    away = jnp.einsum("kij,nkj->nki", factors, a["x"][:, None] - a["means"])
    terms = a["alphas"] + logs.sum(1) - 0.5 * (away**2).sum(2)
    prior = 0.5 * gamma**2 * (factors**2).sum() - m * logs.sum()
    likelihood = logsumexp(terms, 1).sum() - n * (0.5 * d * jnp.log(2 * jnp.pi) + logsumexp(a["alphas"]))
    freedom = d + m + 1
    constant = freedom * d * (jnp.log(gamma) - 0.5 * jnp.log(2.0)) - 0.25 * d * (d - 1) * jnp.log(jnp.pi)
    constant -= gammaln(0.5 * (freedom - jnp.arange(d))).sum()
    return {"err": prior - k * constant - likelihood}


def _rk4(a: Named) -> Named:
    p, dt = a["p"], a["dt"]

    def slope(u: Any) -> Any:
        return jnp.stack([p[0] * (u[1] - u[0]), u[0] * (p[1] - u[2]) - u[1], u[0] * u[1] - p[2] * u[2]])

    def step(u: Any, _: None) -> tuple[Any, None]:
        k1 = slope(u)
        k2 = slope(u + 0.5 * dt * k1)
        k3 = slope(u + 0.5 * dt * k2)
        k4 = slope(u + dt * k3)
        return u + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return {"u": jax.lax.scan(step, a["u"], None, a["steps"])[0]}


def _bundle(a: Named) -> Named:
    cameras, points = a["cameras"][a["pairs"][:, 0]], a["points"][a["pairs"][:, 1]]
    v = points - cameras[:, 3:6]
    angle = jnp.linalg.norm(cameras[:, :3], axis=1, keepdims=True)
    axis, c, s = cameras[:, :3] / angle, jnp.cos(angle), jnp.sin(angle)
    seen = v * c + jnp.cross(axis, v) * s + axis * (axis * v).sum(1, keepdims=True) * (1 - c)
    at = seen[:, :2] / seen[:, 2:]
    square = (at**2).sum(1, keepdims=True)
    stretch = 1 + cameras[:, 9:10] * square + cameras[:, 10:] * square**2
    w = a["weights"]
    errors = w[:, None] * (at * stretch * cameras[:, 6:7] + cameras[:, 7:9] - a["features"])
    return {"errors": errors, "weight_errors": 1 - w**2}


def _lstm(a: Named) -> Named:
    first, scale, shift = a["extra"]

    def layer(flow: Any, given: tuple[Any, Any]) -> tuple[Any, Any]:
        w, (hidden, cell) = given
        forget, give = jax.nn.sigmoid(flow * w[0] + w[4]), jax.nn.sigmoid(flow * w[2] + w[6])
        take, change = jax.nn.sigmoid(hidden * w[1] + w[5]), jnp.tanh(hidden * w[3] + w[7])
        cell = cell * forget + take * change
        hidden = give * jnp.tanh(cell)
        return hidden, jnp.stack([hidden, cell])

    def step(state: Any, given: tuple[Any, Any]) -> tuple[Any, Any]:
        now, following = given
        flow, state = jax.lax.scan(layer, now * first, (a["mains"], state))
        guess = flow * scale + shift
        return state, jnp.sum(following * (guess - jnp.log(2 + jnp.exp(guess).sum())))

    sequence = a["sequence"]
    state, terms = jax.lax.scan(step, a["state"], (sequence[:-1], sequence[1:]))
    return {"state": state, "loss": -terms.sum() / sequence[1:].size}


def _brusselator(a: Named) -> Named:
    u, v, n = a["u"], a["v"], len(a["u"])
    x = jnp.arange(n) / (n - 1)
    inside = ((x[:, None] - 0.3) ** 2 + (x - 0.6) ** 2 <= 0.01) & (a["t"] >= 1.1)

    def laplace(w: Any) -> Any:
        return sum(jnp.roll(w, shift, axis) for shift in (1, -1) for axis in (0, 1)) - 4 * w

    rate, uuv = a["alpha"] * (n - 1) ** 2, u * u * v
    du = a["b"] + uuv - (a["a"] + 1) * u + rate * laplace(u) + jnp.where(inside, 5.0, 0.0)
    return {"du": du, "dv": a["a"] * u - uuv + rate * laplace(v)}


def _repeated(step: Callable[[Any], Any], start: Any, count: int) -> Any:
    return jax.lax.scan(lambda u, _: (step(u), None), start, None, count)[0]


def _neighbours(u: Any) -> Any:
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]


def _inner(u: Any) -> Any:
    return u[1:-1, 1:-1]


def _heat2d(a: Named) -> Named:
    def step(u: Any) -> Any:
        return u.at[1:-1, 1:-1].add(a["r"] * (_neighbours(u) - 4 * _inner(u)))

    return {"u": _repeated(step, a["u"], a["steps"])}


def _jacobi2d(a: Named) -> Named:
    def step(both: tuple[Any, Any]) -> tuple[Any, Any]:
        one, two = both
        two = two.at[1:-1, 1:-1].set(0.2 * (_inner(one) + _neighbours(one)))
        return one.at[1:-1, 1:-1].set(0.2 * (_inner(two) + _neighbours(two))), two

    return dict(zip("ab", _repeated(step, (a["a"], a["b"]), a["steps"]), strict=True))


_DIRECTIONS = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
_SHARES = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])[:, None, None]
_OPPOSITE = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])


def _lbm(a: Named) -> Named:
    h, w = a["solid"].shape
    across, down = (_DIRECTIONS[:, i, None, None] for i in (0, 1))

    def step(grid: Any) -> Any:
        f = jnp.stack([grid[q, 1 - y : h - 1 - y, 1 - x : w - 1 - x] for q, (x, y) in enumerate(_DIRECTIONS)])
        rho = f.sum(0)
        u, v = (across * f).sum(0) / rho, (down * f).sum(0) / rho
        along = 3 * (across * u + down * v)
        balance = _SHARES * rho * (1 - 1.5 * (u * u + v * v) + along + 0.5 * along**2)
        new = jnp.where(_inner(a["solid"]), f[_OPPOSITE], f + a["omega"] * (balance - f))
        return grid.at[:, 1:-1, 1:-1].set(new)

    return {"f": _repeated(step, a["f"], 2 * a["pairs"])}


def _particles(a: Named) -> Named:
    dt, x, v = a["dt"], a["p"][:, :3], a["p"][:, 3:6]
    mass, charge = a["p"][:, 6:7], a["p"][:, 7:]

    def step(both: tuple[Any, Any]) -> tuple[Any, Any]:
        x, v = both
        r2 = (x * x).sum(1, keepdims=True) + 0.1
        v = v - dt * charge / (mass * r2 * jnp.sqrt(r2)) * x
        return x + dt * v, v

    x, v = _repeated(step, (x, v), a["steps"])
    return {"return": jnp.sum(0.5 * mass * v * v), "p": jnp.concatenate([x, v, mass, charge], 1)}


def _nbody(a: Named) -> Named:
    dt, mass = a["dt"], a["mass"]

    def pull(q: Any) -> Any:
        away = q - q[:, None]
        r2 = 0.05 + (away**2).sum(2)
        return ((mass / (r2 * jnp.sqrt(r2)))[:, :, None] * away).sum(1)

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        q, v, pulled = state
        v = v + 0.5 * dt * pulled
        q = q + dt * v
        pulled = pull(q)
        return q, v + 0.5 * dt * pulled, pulled

    q, v, _ = _repeated(step, (a["q"], a["v"], pull(a["q"])), a["steps"])
    return {"q": q, "v": v}


def _heat(a: Named) -> Named:
    def step(u: Any) -> Any:
        flow = (1 + a["kappa"][:-1] * u[:-1] ** 2) * (u[1:] - u[:-1])
        return u.at[1:-1].add(a["dt"] * (flow[1:] - flow[:-1]))

    return {"u": _repeated(step, a["u"], a["steps"])}


def _wave(a: Named) -> Named:
    n, speed = len(a["speed"]), a["speed"]

    def step(state: tuple[Any, Any], s: Any) -> tuple[tuple[Any, Any], Any]:
        old, now = state
        now = now.at[n // 2, n // 2].add(jnp.sin(0.7 * s))
        new = 2 * _inner(now) - _inner(old) + _inner(speed) ** 2 * (_neighbours(now) - 4 * _inner(now))
        following = jnp.zeros((n, n)).at[1:-1, 1:-1].set(new)
        return (now, following), following[1, 2]

    start = (jnp.zeros((n, n)), jnp.zeros((n, n)))
    return {"trace": jax.lax.scan(step, start, jnp.arange(len(a["trace"])))[1]}


def _cholesky(a: Named) -> Named:
    lower = jnp.tril(a["a"])
    whole = lower + lower.T - jnp.diag(jnp.diag(lower))
    return {"a": jnp.linalg.cholesky(whole, symmetrize_input=False)}


def _fft(a: Named) -> Named:
    z = jnp.fft.fft(a["re"] + 1j * a["im"])
    return {"re": z.real, "im": z.imag}


def _fft_pair(a: Named) -> Named:
    z = jnp.fft.ifft(jnp.fft.fft(a["z"][:, 0] + 1j * a["z"][:, 1]))
    return {"z": jnp.stack([z.real, z.imag], 1)}


def _hmm(a: Named) -> Named:
    emit = a["emit"].T[a["seen"]]

    def step(alpha: Any, following: Any) -> tuple[Any, Any]:
        total = alpha.sum()
        return (alpha / total) @ a["move"] * following, jnp.log(total)

    last, logs = jax.lax.scan(step, emit[0] / emit.shape[1], emit[1:])
    return {"return": logs.sum() + jnp.log(last.sum())}


def _sparse(a: Named) -> Named:
    rows = len(a["start"]) - 1
    row = np.repeat(np.arange(rows), np.diff(a["start"]))
    return {"y": jax.ops.segment_sum(a["val"] * a["x"][a["col"]], row, rows, indices_are_sorted=True)}


def _black_scholes(a: Named) -> Named:
    root = a["vol"] * jnp.sqrt(a["time"])
    d1 = (jnp.log(a["spot"] / a["strike"]) + (a["rate"] + 0.5 * a["vol"] ** 2) * a["time"]) / root
    sign = jnp.where(a["put"], -1.0, 1.0)
    first, second = (0.5 * (1 + erf(sign * d / jnp.sqrt(2.0))) for d in (d1, d1 - root))
    return {"price": sign * (a["spot"] * first - a["strike"] * jnp.exp(-a["rate"] * a["time"]) * second)}


FUNCTIONS: Mapping[str, Callable[[Named], Named]] = {
    "GMM": _gmm,
    "RK4 (Lorenz)": _rk4,
    "bundle adjustment": _bundle,
    "LSTM": _lstm,
    "FFT and back": _fft_pair,
    "Brusselator": _brusselator,
    "relu3": lambda a: {"y": jnp.maximum(a["x"], 0) ** 3},
    "norm": lambda a: {"y": a["x"] / jnp.linalg.norm(a["x"])},
    "heat2d": _heat2d,
    "heat2d_copied": _heat2d,
    "jacobi2d": _jacobi2d,
    "LBM": _lbm,
    "particles": _particles,
    "nbody": _nbody,
    "heat": _heat,
    "wave": _wave,
    "cholesky": _cholesky,
    "fft": _fft,
    "hmm_forward": _hmm,
    "csr_matvec": _sparse,
    "black_scholes": _black_scholes,
    "axpy": lambda a: {"y": a["a"] * a["x"] + a["y"]},
}
