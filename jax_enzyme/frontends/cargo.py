"""Crates of Rust with all that they depend on, through cargo, which knows in which order and with which features they
are compiled. It is kept from the network: what is not in the project, vendored or in cargo's own store is an error.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.processes import run
from jax_enzyme.frontends.rustc import AS_MODULES, host, rustc
from jax_enzyme.frontends.source import Source
from jax_enzyme.working import working

MANIFEST = "Cargo.toml"
_FORMAT = "2"
"""Changes whenever the same crate would give other IR for a reason that is not in the key."""
_OF_CARGO = ("--features", "-F", "--no-default-features", "--all-features", "--package", "-p", "--locked", "--config")
_OF_A_PACKAGE = ("--package", "-p")
_WITH_VALUE = ("--features", "-F", "--package", "-p", "--config")
_NEEDS_CARGO = ("dependencies", "workspace", "features", "target", "build-dependencies", "lints")
_SETTINGS = (MANIFEST, "Cargo.lock", ".cargo/config.toml", "rust-toolchain.toml")
_SEPARATOR = "\x1f"
_STAND_INS = {"rayon-core": Path(__file__).parent / "rust_include" / "rayon_core.rs"}
"""Crates that start threads, and the root of one that means the same on the thread that calls."""


def package_of(path: Path) -> Path | None:
    """The folder of the manifest that a path leads to: itself, the folder, or the root of the crate."""
    if path.is_dir():
        near = [path]
    else:
        near = {MANIFEST: [path.parent], "lib.rs": [*path.resolve().parents[:2]]}.get(path.name, [])
    return next((folder for folder in near if (folder / MANIFEST).is_file()), None)


def needs_cargo(folder: Path) -> bool:
    """Whether the folder has a crate that takes more than rustc: others, features, a build script."""
    try:
        manifest = tomllib.loads((folder / MANIFEST).read_text())
    except OSError:
        return False
    except ValueError as error:
        raise CompileError(f"this is no manifest of cargo: {error}", str(folder / MANIFEST)) from None
    package = manifest.get("package", {})
    scripted = "build" in package or "build.rs" in os.listdir(folder)
    inherits = any(isinstance(value, dict) for value in package.values())
    return scripted or inherits or any(manifest.get(part) for part in _NEEDS_CARGO)


def crates(folder: Path, flags: Sequence[str]) -> list[Source]:
    """The LLVM IR of the libraries of a package or workspace, and of the crates on which they depend. `flags` are
    rustc's, and those of cargo that choose features and packages. CompileError where there is no cargo, or it does not
    compile them."""
    cargo = toolchain.program(("cargo",), "crates that depend on others", "install it from https://rustup.rs")
    own, others = _told_apart(flags)
    words = [
        *cargo.command, "build", "--lib", "--release", "--offline", "--message-format=json", "--color=never",
        # What is compiled for the build itself then gets no flags of ours.
        f"--target={host()}", *own,
    ]  # fmt: skip
    given = (*os.environ.get("CARGO_ENCODED_RUSTFLAGS", "").split(_SEPARATOR), *os.environ.get("RUSTFLAGS", "").split())
    rustflags = [*filter(None, given), *others, "--emit=llvm-ir", *AS_MODULES]
    cache = DiskCache.named("ir")
    ours = (root.read_bytes() for root in _STAND_INS.values())
    key = digest(_FORMAT, cargo.version, rustc().version, os.path.realpath(folder), *words, *rustflags, *ours)
    entry = cache.get(key)
    found = toolchain.unpack(entry) if entry is not None else None
    if found is None:
        modules, files = _compiled(folder, words, rustflags)
        found = "", modules
        cache.put(key, toolchain.pack("", files, modules))
    if not found[1]:
        raise CompileError("no package of it is a library", str(folder / MANIFEST), "give it a [lib], with src/lib.rs")
    return [Source("rust", f"{folder / MANIFEST}({name})", ir) for name, ir in found[1].items()]


def _compiled(folder: Path, words: Sequence[str], rustflags: Sequence[str]) -> tuple[toolchain.Files, list[str]]:
    """The modules of the crates by name, and the files that went into them."""
    with (
        working(f"compiling {folder / MANIFEST}"),
        tempfile.TemporaryDirectory(prefix="jax_enzyme-", ignore_cleanup_errors=True) as name,
    ):
        environment = {
            "CARGO_ENCODED_RUSTFLAGS": _SEPARATOR.join(rustflags),
            "CARGO_INCREMENTAL": "0",
            "CARGO_PROFILE_RELEASE_LTO": "off",
            "CARGO_TARGET_DIR": name,
        }
        try:
            stand_ins = _stand_ins(folder, words, Path(name))
            result = run([*words, *stand_ins], Path(name), environment, folder)
        except OSError as error:
            raise CompileError(f"cargo cannot be started: {error}", words[0]) from None
        if result.returncode:
            raise _refused(folder, result.stderr, result.stdout)
        artifacts = list(_artifacts(result.stdout))
        above = [folder.resolve(), *folder.resolve().parents]
        listed = [file for module, _ in artifacts for file in toolchain.dependencies(module.with_suffix(".d"))]
        files = [next((str(up / file) for up in above if (up / file).is_file()), file) for file in listed]
        settings = [str(up / own) for up in above for own in _SETTINGS if (up / own).is_file()]
        reads = {*files, *(manifest for _, manifest in artifacts), *settings}
        modules = {module.name: module.read_bytes() for module, _ in artifacts}
        return modules, sorted(file for file in reads if not file.startswith(name))


def _stand_ins(folder: Path, words: Sequence[str], beside: Path) -> list[str]:
    """The words with which cargo takes packages of ours, made in `beside`, for those of other roots."""
    cargo = words[: words.index("build")]
    asked = [*cargo, "metadata", "--offline", "--format-version=1", f"--filter-platform={host()}"]
    chosen = iter(_told_apart(words)[0])
    for word in chosen:
        given = [word, *([next(chosen, "")] if word in _WITH_VALUE else [])]
        asked += given if word.partition("=")[0] not in _OF_A_PACKAGE else []
    result = run(asked, beside, {}, folder)
    # Where it does not know the packages it cannot compile them either, and says why.
    packages = json.loads(result.stdout)["packages"] if not result.returncode else []
    places: list[str] = []
    for package in (package for package in packages if package["name"] in _STAND_INS):
        place = beside / f"{package['name']}-{package['version']}"
        (place / "src").mkdir(parents=True)
        (place / MANIFEST).write_text(_manifest_like(package))
        shutil.copyfile(_STAND_INS[package["name"]], place / "src" / "lib.rs")
        places.append(str(place))
    return [f"--config=paths={json.dumps(places)}"] if places else []


def _manifest_like(package: dict[str, Any]) -> str:
    """The manifest of a package of this name, version and features, which depends on the same ones: the project's lock
    file stays as it is. A copy of its own would do for packages of a registry alone: in a checkout it may inherit."""
    lines = ["[package]", *(f"{key} = {json.dumps(package[key])}" for key in ("name", "version")), 'edition = "2021"']
    lines += ["[features]", *(f"{json.dumps(name)} = {json.dumps(on)}" for name, on in package["features"].items())]
    for needed in package["dependencies"]:
        if needed["kind"] == "dev":
            continue
        above = f"target.{json.dumps(needed['target'])}." if needed["target"] else ""
        kind = "build-dependencies" if needed["kind"] == "build" else "dependencies"
        told = {
            "package": needed["name"],
            "version": needed["req"],
            "optional": needed["optional"],
            "features": needed["features"],
            "default-features": needed["uses_default_features"],
            "path": needed.get("path"),
            "registry-index": needed["registry"],
        }
        lines += [f"[{above}{kind}.{json.dumps(needed['rename'] or needed['name'])}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in told.items() if value is not None]
    return "\n".join(lines)


def _told_apart(flags: Sequence[str]) -> tuple[list[str], list[str]]:
    own: list[str] = []
    others: list[str] = []
    words = iter(flags)
    for word in words:
        if word.partition("=")[0] in _OF_CARGO:
            own += [word, *([next(words, "")] if word in _WITH_VALUE else [])]
        else:
            others.append(word)
    return own, others


def _artifacts(messages: str) -> Iterator[tuple[Path, str]]:
    """The modules of the crates that cargo has compiled, each with its manifest."""
    for line in messages.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") != "compiler-artifact":
            continue
        files = [Path(file) for file in message["filenames"]]
        # Crates of the project lie one folder above, without the digest in their names (a static library is the same
        # file by another name), or have none.
        places = [file for file in files if file.parent.name == "deps"] + [f.parent / "deps" / f.name for f in files]
        places += [near for file in files for near in (file.parent / "deps").glob("*.a") if near.samefile(file)]
        modules = (place.with_name(f"{place.stem.removeprefix('lib')}.ll") for place in places)
        module = next((module for module in modules if module.is_file()), None)
        if module is not None:
            yield module, message["manifest_path"]


def _refused(folder: Path, errors: str, messages: str) -> CompileError:
    """What cargo says, with what the compiler says; where a crate is not there, how to come by it."""
    rendered = [json.loads(line)["message"]["rendered"] for line in messages.splitlines() if '"level":"error"' in line]
    said = "\n".join([*rendered, *(line for line in errors.splitlines() if not line.lstrip().startswith("Compiling "))])
    remedy = "the messages above are cargo's and rustc's own; `cargo build` in that folder has to work"
    if "--offline" in errors or "offline" in errors:
        remedy = "cargo is not let into the network: run `cargo fetch` or `cargo vendor` in that folder first"
    return CompileError(f"cargo does not compile the crate:\n{said}", str(folder / MANIFEST), remedy)
