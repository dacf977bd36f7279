"""`jax-enzyme explain`: what the engine makes of a kernel, or why it cannot be differentiated (`kernel.inspect`)."""

from __future__ import annotations

import argparse

from jax_enzyme.codegen.inspection import inspect
from jax_enzyme.errors import SignatureError
from jax_enzyme.frontends import load
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature import parse as parse_signature


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="a source file in any language that there is a front end for")
    parser.add_argument("signature", help='such as "n: i32, x: f64[n], out y: f64[n]"')
    parser.add_argument("--symbol", help="the function, where the source has several")
    parser.add_argument("--lang", help="the language, where the suffix does not say it")
    parser.add_argument("--flag", action="append", default=[], help="a compiler flag; may be repeated")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="dimensions and static integers")
    parser.add_argument(
        "--wrt", nargs="+", metavar="NAME", help="the inputs that derivatives are asked for; default: all"
    )
    parser.add_argument(
        "--ir",
        nargs="?",
        const="primal",
        metavar="FUNCTION",
        help="print the IR of a function too (primal, jvp, augmented ...)",
    )
    parser.add_argument("--optimised", action="store_true", help="print that IR as it is compiled for this machine")


def main(arguments: argparse.Namespace) -> int:
    signature = parse_signature(arguments.signature)
    binding = _binding(signature, arguments.set)
    program = load(arguments.source, arguments.symbol, arguments.lang, arguments.flag)
    report = inspect(program, signature, binding, wrt=arguments.wrt)
    print(report)
    if arguments.ir:
        if arguments.ir not in report.functions:
            raise SignatureError(
                f"there is no function {arguments.ir!r}", remedy=f"one of {', '.join(report.functions)}"
            )
        print("\n" + report.ir(arguments.ir, optimised=arguments.optimised))
    return 0


def _binding(signature: Signature, settings: list[str]) -> Binding:
    given: dict[str, int] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if not value.lstrip("-").isdigit():
            raise SignatureError(f"`--set {setting}` is not of the form NAME=INTEGER")
        given[name] = int(value)
    dims = {name: value for name, value in given.items() if name in signature.shape_names}
    if missing := sorted(signature.shape_names - dims.keys()):
        raise SignatureError(
            f"no value for {', '.join(f'`{m}`' for m in missing)}",
            remedy="give every name in a shape one: --set " + " ".join(f"{m}=100" for m in missing),
        )
    if unknown := [name for name in given if name not in dims and name not in signature]:
        raise SignatureError(f"`{unknown[0]}` is no parameter and occurs in no shape", str(signature))
    return Binding.of(dims, {name: value for name, value in given.items() if name not in dims})
