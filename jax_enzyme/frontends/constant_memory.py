"""`const` parameters of a signature: variables in constant memory of a CUDA source that the caller sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jax_enzyme.errors import SignatureError
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.spelling import find, spelling
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.signature import Signature
from jax_enzyme.transform.constant_variables import constant_variables, to_parameters


def with_constants(program: Program, signature: Signature) -> Program:
    """The program whose kernel takes the variables that a signature calls `const` as its last parameters, in their
    order; itself where there are none. SignatureError where a name is that of no variable, or of several, and where the
    program is no CUDA kernel."""
    names = signature.variables
    if not names:
        return program
    if program.lang != "cuda" or program.device:
        what = "a host function, which sets its variables itself" if program.device else program.lang
        raise SignatureError(
            f"`const {names[0]}` is a `__constant__` variable of a CUDA kernel, and `{program.symbol}` is {what}",
            program.source_name,
            "leave it out of the signature",
        )
    module = parse(program.ir)
    variables = constant_variables(module)
    symbols = [_meant(name, variables, program) for name in names]
    to_parameters(module, program.symbol, symbols)
    return replace(program, ir=to_text(module))


def _meant(name: str, variables: Mapping[str, GlobalVariable], program: Program) -> str:
    found = find(name, list(variables))
    if len(found) == 1:
        return found[0]
    spelled = sorted(str(spelling(v)) for v in found or variables)
    if found:
        raise SignatureError(
            f"`const {name}` may be any of {', '.join(spelled)}", program.source_name, "rename all but one of them"
        )
    raise SignatureError(
        f"kernel `{program.symbol}` uses no `__constant__` variable named `{name}`",
        program.source_name,
        f"it uses {', '.join(spelled)}" if spelled else "it uses none: leave `const` parameters out",
    )
