"""Kernels in notebook cells: `%load_ext jax_enzyme`, then `%%kernel`.

The first line of a cell says the language, the symbol and the signature; the source follows:

    %%kernel c energy n: i32, x: f64[n], out e: f64[]
    void energy(int n, const double *x, double *e) { ... }

`energy` is a `Kernel` afterwards. Without a signature it has that of the source's debug information. Options stand
before the language: `--flags "-O2 -Iinclude"`, `--as name`, and for CUDA `--grid`, `--block` and `--shared`. The source
is kept in a file of the session, so that messages and reports show it beside its lines; the same symbol writes to the
same file again.
"""

# IPython does not annotate its decorators.
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

import shlex
from argparse import REMAINDER
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from jax_enzyme.errors import JaxEnzymeError
from jax_enzyme.frontends.source import INLINE_NAMES

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Gives `%%kernel` to a shell. Its files are gone when the extension is unloaded or the session ends."""
    from IPython.core.error import UsageError
    from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

    folder = TemporaryDirectory(prefix="jax_enzyme_cells_")

    @magic_arguments()
    @argument("--flags", default="", help="flags for the compiler, in quotes")
    @argument("--as", dest="name", help="the variable to define, where it is not named like the symbol")
    @argument("--grid", help="the grid of a CUDA kernel: a number, or an expression over dimensions")
    @argument("--block", help="its block")
    @argument("--shared", help="its bytes of dynamic shared memory")
    @argument("lang", help=f"the language: {', '.join(INLINE_NAMES)}")
    @argument("symbol", help="the function")
    @argument("signature", nargs=REMAINDER, help="its parameters, in order, as je.kernel takes them, or nothing")
    def kernel(line: str, cell: str) -> None:
        """Makes a kernel of the source in this cell."""
        arguments = parse_argstring(kernel, line)
        if arguments.lang not in INLINE_NAMES:
            raise UsageError(f"%%kernel: {arguments.lang!r} is none of {', '.join(INLINE_NAMES)}")
        if arguments.name is not None and not arguments.name.isidentifier():
            raise UsageError(f"%%kernel: --as names a variable, which {arguments.name!r} cannot be")
        try:
            made = _kernel(Path(folder.name), arguments, cell)
        except JaxEnzymeError as error:
            # IPython asks an error for these lines: a traceback through this package says nothing about the source.
            lines = f"{type(error).__name__}: {error}".splitlines()
            error.__dict__["_render_traceback_"] = lambda: lines
            raise
        shell.push({arguments.name or arguments.symbol.rpartition("::")[2]: made})

    # IPython annotates only the method of a class that this also is.
    shell.register_magic_function(kernel, "cell", "kernel")  # pyright: ignore[reportArgumentType]


def unload(shell: InteractiveShell) -> None:
    shell.magics_manager.magics["cell"].pop("kernel", None)


def _kernel(folder: Path, arguments: Any, cell: str) -> object:
    from jax_enzyme.primitives.making import kernel  # JAX is imported with the first kernel

    plain = Path(INLINE_NAMES[arguments.lang])
    path = folder / f"{''.join(c if c.isalnum() else '_' for c in arguments.symbol)}{plain.suffix}"
    path.write_text(cell, "utf-8")
    return kernel(
        path,
        arguments.symbol,
        " ".join(arguments.signature).strip("\"'") or None,
        lang=arguments.lang,
        flags=shlex.split(arguments.flags.strip("\"'")),
        grid=_number(arguments.grid),
        block=_number(arguments.block),
        shared=_number(arguments.shared),
    )


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdecimal() else text
