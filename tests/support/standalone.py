"""Derivatives as programs of their own, without Python around them: for valgrind.

The array function's IR and a driver in C make an executable; every buffer is an allocation of exactly its size, so that
one byte too far is an error. The function runs twice over the same inputs: what it leaves behind shows.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.helpers import link
from tests.support.native import NUMPY

_DRIVER = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t derivative({types}) __asm__("{symbol}");

static void *buffer(size_t size, FILE *from) {{
    void *made = malloc(size);
    if (from && fread(made, 1, size, from) != size) abort();
    return made;
}}

int main(int count, char **names) {{
    for (int k = 0; k < 2; k++) {{
        FILE *inputs = fopen(names[1], "rb");
        void *b[] = {{ {made} }};
        {zeros}
        int64_t status = derivative({passed});
        FILE *results = fopen(names[2], "wb");
        {written}
        fclose(inputs);
        fclose(results);
        for (int i = 0; i < {number}; i++) free(b[i]);
        if (status) return 1;
    }}
    return 0;
}}
"""


def build(function: ArrayFunction, folder: Path, level: str = "-O1") -> Path:
    """An executable that runs the function; its arguments are the files of inputs and results."""
    buffers = function.buffers
    lines = {
        "types": ", ".join("void *" for _ in buffers),
        "symbol": function.symbol,
        "made": ", ".join(f"buffer({b.nbytes}, {'inputs' if b.is_input else '0'})" for b in buffers),
        "zeros": " ".join(f"memset(b[{i}], 0, {b.nbytes});" for i, b in enumerate(buffers) if b.zero),
        "passed": ", ".join(f"b[{i}]" for i in range(len(buffers))),
        "written": " ".join(f"fwrite(b[{i}], 1, {b.nbytes}, results);" for i, b in enumerate(buffers) if b.is_result),
        "number": len(buffers),
    }
    (folder / "driver.c").write_text(_DRIVER.format(**lines))
    module = clone(function.module)
    link(module)
    (folder / "derivative.ll").write_text(to_text(module))
    program = folder / "program"
    command = [sys.executable, "-m", "ziglang", "cc", level, "-g", "-mcpu=x86_64_v3", "-fno-sanitize=all"]
    command += ["-Wno-override-module", str(folder / "derivative.ll"), str(folder / "driver.c"), "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True, capture_output=True, text=True)
    return program


def run(program: Path, function: ArrayFunction, inputs: Sequence[Any], wrapper: Sequence[str] = ()) -> list[np.ndarray]:
    """The results. Raises CalledProcessError, with what the wrapper printed, where the run fails."""
    given = [b for b in function.buffers if b.is_input]
    data = [np.ascontiguousarray(v, NUMPY[b.dtype]).tobytes() for b, v in zip(given, inputs, strict=True)]
    files = program.parent / "inputs", program.parent / "results"
    files[0].write_bytes(b"".join(data))
    subprocess.run([*wrapper, str(program), *map(str, files)], check=True, capture_output=True, text=True)
    raw, results, at = files[1].read_bytes(), [], 0
    for b in (b for b in function.buffers if b.is_result):
        results.append(np.frombuffer(raw[at : at + b.nbytes], NUMPY[b.dtype]).reshape(b.shape))
        at += b.nbytes
    return results


VALGRIND = ("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=all")


def named(values: Mapping[str, Any], cotangents: Mapping[str, Any], function: ArrayFunction) -> list[Any]:
    """The inputs of a combined reverse derivative, by name."""
    base = [b for b in function.buffers if b.role == "primal"]
    return [
        cotangents[base[b.of].name] if b.role == "shadow" else values[b.name] for b in function.buffers if b.is_input
    ]
