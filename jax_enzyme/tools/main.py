"""The command `jax-enzyme`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from jax_enzyme.errors import JaxEnzymeError
from jax_enzyme.tools import explain, opt


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand; the exit status. Errors of ours go to standard error in their own words."""
    parser = argparse.ArgumentParser(prog="jax-enzyme", description="Look at what jax_enzyme does with a program.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in (("opt", opt), ("explain", explain)):
        summary = (command.__doc__ or "").strip()
        sub = commands.add_parser(name, help=summary.partition(": ")[2], description=summary)
        command.add_arguments(sub)
        sub.set_defaults(run=command.main)
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except JaxEnzymeError as error:
        print(f"jax-enzyme: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
