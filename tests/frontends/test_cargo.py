"""Crates that depend on others, which cargo compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

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
