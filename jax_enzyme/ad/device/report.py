"""What the engine decided about the reverse of a device function, as data for people to read."""

from __future__ import annotations

from jax_enzyme.ad.device.reverse import reversal_of
from jax_enzyme.ad.report import ReverseReport, report_of
from jax_enzyme.ir.arrays import Vjp
from jax_enzyme.ir.device import DeviceFunction


def reverse_report(base: DeviceFunction, step: Vjp) -> ReverseReport:
    """The report of a reverse step of a device function in canonical form: tape bytes are those of one thread.

    Raises what planning it raises.
    """
    return report_of(reversal_of(base, step))
