"""The form in which a built function lies on disk: a line of JSON that describes it, then the object code."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from jax_enzyme.classes import dataclass
from jax_enzyme.ir.arrays import Buffer


@dataclass(frozen=True)
class Stored:
    """Object code that defines `je.entry`, and the buffers that it takes. `initialises`: it defines `je.initialise`.
    `read`: which of the buffers whose contents mean nothing afterwards it leaves as they are."""

    buffers: tuple[Buffer, ...]
    initialises: bool
    code: bytes
    read: frozenset[int] = frozenset()

    def to_bytes(self) -> bytes:
        header = {
            "buffers": [asdict(b) for b in self.buffers],
            "initialises": self.initialises,
            "read": sorted(self.read),
        }
        return json.dumps(header, separators=(",", ":")).encode() + b"\n" + self.code

    @staticmethod
    def from_bytes(data: bytes) -> Stored:
        line, _, code = data.partition(b"\n")
        header: dict[str, Any] = json.loads(line)
        rows: list[dict[str, Any]] = header["buffers"]
        buffers = tuple(buffer_from(row) for row in rows)
        return Stored(buffers, header["initialises"], code, frozenset(header["read"]))


def buffer_from(fields: dict[str, Any]) -> Buffer:
    """The buffer that `asdict` made these fields of, and JSON kept."""
    fields["shape"] = tuple(fields["shape"])
    return Buffer(**fields)
