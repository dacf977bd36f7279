"""Crates that depend on others, which cargo compiles."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import load
from jax_enzyme.ir import linking
from tests.support.tools import need

FILES = {
    "Cargo.toml": '[workspace]\nmembers = ["core", "app"]\n',
    ".cargo/config.toml": '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n',
    "core/Cargo.toml": '[package]\nname = "spring-core"\nedition = "2021"\n[dependencies]\nmini = "1"\n'
    "[features]\nstiff = []\n",
    "core/build.rs": 'fn main() { println!("cargo:rustc-env=SCALE=8"); }\n',
    "core/src/lib.rs": 'pub mod force;\n#[cfg(feature = "stiff")]\nconst K: f64 = 17.0;\n'
    '#[cfg(not(feature = "stiff"))]\nconst K: f64 = 19.0;\n'
    'pub fn energy(x: f64) -> f64 { K * mini::square(x) * env!("SCALE").len() as f64 }\n',
    "core/src/force.rs": "pub fn force(x: f64) -> f64 { -2.0 * x }\n",
    "app/Cargo.toml": '[package]\nname = "app"\nedition = "2021"\n[lib]\ncrate-type = ["rlib", "cdylib"]\n'
    '[dependencies]\nspring-core = { path = "../core" }\n',
    "app/src/lib.rs": '#[no_mangle]\npub extern "C" fn total(x: f64) -> f64 { spring_core::energy(x) }\n',
    "vendor/mini/Cargo.toml": '[package]\nname = "mini"\nversion = "1.0.0"\n',
    "vendor/mini/.cargo-checksum.json": '{"files": {}, "package": null}',
    "vendor/mini/src/lib.rs": "pub fn square(x: f64) -> f64 { x * x }\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    need("cargo")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_workspace_with_a_vendored_crate(workspace: Path) -> None:
    """By the folder of the workspace or of a package, its manifest and its root; features by flags; what changed in a
    crate that is depended on is compiled again."""
    for source in (
        workspace,
        workspace / "app",
        workspace / "app" / "Cargo.toml",
        workspace / "app" / "src" / "lib.rs",
    ):
        program = load(str(source), "total")
        assert {"total"} == set(linking.names(program.ir).functions) - set(linking.names(program.ir).local)
        assert "1.900000e+01" in program.ir
    assert "1.700000e+01" in load(workspace / "core", "energy", flags=("--features=stiff",)).ir
    assert "-2.000000e+00" in load(workspace / "app", "spring_core::force::force").ir
    (workspace / "core" / "src" / "force.rs").write_text("pub fn force(x: f64) -> f64 { -3.0 * x }\n")
    assert "-3.000000e+00" in load(workspace / "app", "force").ir


def test_what_cargo_says_is_told(workspace: Path) -> None:
    (workspace / "core" / "src" / "force.rs").write_text("pub fn force(x: f64) -> f64 { -2.0 * y }\n")
    with pytest.raises(CompileError, match=r"cannot find value `y` in this scope\n *--> core/src/force.rs:1:38"):
        load(workspace / "app", "total")
    with (workspace / "app" / "Cargo.toml").open("a") as manifest:
        manifest.write('other = "1"\n')
    with pytest.raises(CompileError, match="no matching package named `other`") as caught:
        load(workspace / "app", "total")
    assert "`cargo vendor`" in (caught.value.remedy or "")


_PARALLEL = """
/// As rayon's loops ask how often to cut.
#[path = "plumbing/mod.rs"]
mod plumbing;
fn tree(x: &[f64]) -> f64 {
    if x.len() < 3 { return x.iter().map(|v| v.exp()).product(); }
    let (a, b) = x.split_at(x.len() / 2);
    let (p, q) = rayon_core::join(|| tree(a), || tree(b));
    p * q + p.sin()
}
#[no_mangle]
pub unsafe extern "C" fn k(n: i32, x: *const f64, y: *mut f64) -> f64 {
    let x = std::slice::from_raw_parts(x, n as usize);
    let (low, high) = std::slice::from_raw_parts_mut(y, n as usize).split_at_mut(x.len() / 2);
    rayon_core::scope(|s| {
        s.spawn(|_| for (o, v) in low.iter_mut().zip(x) { *o = v.cos() });
        s.spawn(|_| for (o, v) in high.iter_mut().zip(&x[x.len() / 2..]) { *o = v * v });
    });
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let cuts = plumbing::cuts() as f64 + 10.0 * rayon_core::current_num_threads() as f64;
    pool.install(|| tree(x)) + rayon_core::broadcast(|c| c.num_threads() as f64 * cuts)[0]
}
"""


def test_a_static_library_with_the_loops_of_rayon(workspace: Path) -> None:
    """In place of the crate that starts threads (here one that does not compile, of a checkout: its manifest inherits
    from one above), ours does all at once, in order; the project's lock file stays as it is."""
    checkout, library = workspace / "checkout" / "core", workspace / "app" / "src"
    for folder in (checkout / "src", library / "plumbing"):
        folder.mkdir(parents=True)
    (checkout.parent / "Cargo.toml").write_text(
        '[workspace]\nmembers = ["core"]\n[workspace.package]\nedition = "2021"\n[workspace.dependencies]\nmini = "1"\n'
    )
    (checkout / "Cargo.toml").write_text(
        '[package]\nname = "rayon-core"\nversion = "1.12.1"\nedition.workspace = true\n'
        '[dependencies]\nmini = { workspace = true, optional = true }\n[features]\nspin = ["dep:mini"]\n'
        "[target.'cfg(unix)'.dependencies]\nmini.workspace = true\n"
    )
    (checkout / "src" / "lib.rs").write_text('compile_error!("threads");\n')
    with (workspace / "Cargo.toml").open("a") as manifest:
        manifest.write('exclude = ["checkout"]\n[patch.crates-io]\nrayon-core = { path = "checkout/core" }\n')
    (workspace / "app" / "Cargo.toml").write_text(
        '[package]\nname = "app"\nedition = "2021"\n[lib]\ncrate-type = ["staticlib"]\n'
        '[dependencies]\nrayon-core = { version = "1", optional = true }\n[features]\nparallel = ["rayon-core"]\n'
    )
    (library / "lib.rs").write_text(_PARALLEL)
    (library / "plumbing" / "mod.rs").write_text("pub fn cuts() -> usize { rayon_core::current_num_threads() }\n")
    flags = ("--features=parallel", "-p", "app", "--locked")
    subprocess.run(("cargo", "generate-lockfile", "--offline"), cwd=workspace, check=True, capture_output=True)
    kernel = je.kernel(workspace, "k", "n: i32, x: f64[n], out y: f64[n] -> f64", flags=flags)
    x = np.linspace(0.1, 0.9, 7)
    value, y = kernel(x)
    np.testing.assert_allclose(y, np.where(np.arange(7) < 3, np.cos(x), x * x), rtol=1e-15)
    low, high = np.exp(x[0]), np.exp(x[1:3].sum())
    left, right = low * high + np.sin(low), np.exp(x[3:5].sum()) * np.exp(x[5:].sum()) + np.sin(np.exp(x[3:5].sum()))
    np.testing.assert_allclose(value, left * right + np.sin(left) + 10, rtol=1e-14)
    je.check_grads(kernel, (x,))
