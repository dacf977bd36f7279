"""IR comes from the cache exactly while nothing changed that it was made of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import cuda, load, toolchain
from jax_enzyme.frontends.clang import LIST_HEADERS
from jax_enzyme.frontends.read_ahead import read_ahead
from jax_enzyme.frontends.source import Source


@pytest.fixture
def runs() -> Iterator[mock.Mock]:
    with mock.patch.object(subprocess, "Popen", wraps=subprocess.Popen) as run:
        yield run


def test_the_second_time_nothing_runs(runs: mock.Mock) -> None:
    first = load("double f(double x) { return x; }", lang="c")
    assert runs.call_count > 0
    runs.reset_mock()
    assert load("double f(double x) { return x; }", lang="c") == first
    assert runs.call_count == 0


def test_a_header_that_changes(tmp_path: Path, runs: mock.Mock) -> None:
    header, source = tmp_path / "factor.h", tmp_path / "k.c"
    header.write_text("#define FACTOR 2.0\n")
    source.write_text('#include "factor.h"\ndouble f(double x) { return FACTOR * x; }\n')
    first = load(source)
    header.write_text("#define FACTOR 3.0\n")
    second = load(source)
    assert "3.000000e+00" in second.ir
    assert first != second
    runs.reset_mock()
    assert load(source) == second
    assert runs.call_count == 0
    header.unlink()
    with pytest.raises(CompileError, match=r"factor\.h"):
        load(source)


def test_headers_next_to_inline_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inline text includes files from the working directory, and knows one directory from the other."""
    text = '#include "factor.h"\ndouble f(double x) { return FACTOR * x; }\n'
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "factor.h").write_text(f"#define FACTOR {ord(name)}.0\n")
    monkeypatch.chdir(tmp_path / "a")
    assert "9.700000e+01" in load(text, lang="c").ir
    monkeypatch.chdir(tmp_path / "b")
    assert "9.800000e+01" in load(text, lang="c").ir


def test_headers_that_are_read_ahead(tmp_path: Path, runs: mock.Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read once for all sources, until they say something else, and for each where nothing can be kept."""
    header = tmp_path / "all.h"
    zig, place = toolchain.zig(), ("-isystem", str(tmp_path))
    words = ("clang", "-x", "c++", *place, "{ahead}", "-S", "-emit-llvm", *LIST_HEADERS, "{source}", "-o", "{output}")
    recipe = toolchain.Recipe(zig, words, ahead=partial(read_ahead, zig, words, "all.h", "c++"))

    def compiled(name: str) -> tuple[str, list[str]]:
        """The IR, and the ways in which clang came to know the header."""
        runs.reset_mock()
        source = Source("c++", "k.cpp", f'#include <all.h>\nextern "C" double {name}() {{ return factor; }}'.encode())
        ir = toolchain.compile_cached(source, recipe, ())
        ways = ("-emit-pch", "-include-pch", "-include")
        return ir, [way for call in runs.call_args_list for way in ways if way in call.args[0]]

    header.write_text("#pragma once\nconst double factor = 2.0;\n")
    ir, ways = compiled("first")
    assert "2.000000e+00" in ir
    assert ways == ["-emit-pch", "-include", "-include-pch"]
    os.utime(header, (1, 1))  # the same, installed again
    assert compiled("second")[1] == ["-include-pch"]
    assert compiled("second")[1] == []
    header.write_text("#pragma once\nconst double factor = 3.0;\n")
    for name in ("second", "third"):
        assert "3.000000e+00" in compiled(name)[0]
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", "")
    assert compiled("first")[1] == ["-include"]


def test_errors_about_headers_that_are_read_ahead() -> None:
    """Clang opens the source that the headers were read for, to say where they are from."""
    source = Source("cuda", "k.cu", b'__global__ void k(double *x) { x[0] = sqrt("a"); }')
    with pytest.raises(CompileError, match="note: candidate function not viable") as failed:
        cuda.compile_cuda(source, ())
    assert failed.value.place == "kernel.cu:1:39"


def test_numbers_in_names_of_static_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clang writes them without zeros in front."""
    ir = "define ptx_kernel void @k__intern__251e2aee3ca19fe() {\n  ret void\n}\n"
    monkeypatch.setattr(toolchain, "compile_beside", mock.Mock(return_value=(ir, {})))
    assert " @k()" in cuda.compile_cuda(Source("cuda", "k.cu", b""), ())


def test_names_with_spaces(tmp_path: Path, runs: mock.Mock) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "a header.h").write_text("#define FACTOR 2.0\n")
    (folder / "a kernel.c").write_text('#include "a header.h"\ndouble f(double x) { return FACTOR * x; }\n')
    first = load(folder / "a kernel.c")
    runs.reset_mock()
    assert load(folder / "a kernel.c") == first
    assert runs.call_count == 0
    (folder / "a header.h").write_text("#define FACTOR 3.0\n")
    assert load(folder / "a kernel.c") != first


@pytest.mark.parametrize("damage", [b"", b"not an entry"])
def test_damaged_entries(cache_folder: Path, damage: bytes) -> None:
    first = load("double f(double x) { return x; }", lang="c")
    for entry in (cache_folder / "ir").iterdir():
        entry.write_bytes(damage)
    assert load("double f(double x) { return x; }", lang="c") == first


def test_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", "")
    assert load("double f(double x) { return x; }", lang="c").symbol == "f"


def test_at_once(cache_folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        programs = list(pool.map(lambda _: load("double f(double x) { return x; }", lang="c"), range(4)))
    assert len(set(programs)) == 1
    assert len(list((cache_folder / "ir").iterdir())) == 1


def test_a_missing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    toolchain.zig.cache_clear()
    with pytest.raises(CompileError, match="ziglang is not installed") as caught:
        load("double f(double x) { return x; }", lang="c")
    assert caught.value.remedy == "pip install ziglang"
    monkeypatch.setenv("PATH", "")
    toolchain.program.cache_clear()
    with pytest.raises(CompileError, match="no compiler for Fortran") as caught:
        load("end\n", lang="fortran")
    assert "flang-22" in (caught.value.remedy or "")
