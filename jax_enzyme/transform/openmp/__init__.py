"""OpenMP's directives as compilers lower them: first their serial meaning, then marks on the loops that were shared;
and teams, for regions that ask for their thread."""

from jax_enzyme.transform.openmp.calls import TEAM
from jax_enzyme.transform.openmp.sections import show_short_sections
from jax_enzyme.transform.openmp.serial import check_exclusive, make_serial
from jax_enzyme.transform.openmp.sharing import mark_behind
from jax_enzyme.transform.openmp.teams import lower_teams

__all__ = [
    "TEAM",
    "check_exclusive",
    "lower_teams",
    "make_serial",
    "mark_behind",
    "show_short_sections",
]
