"""What threads of a block may do between the same two barriers.

All of them come to the same barriers in the same order. So code from which none of its ways on or back leads to other
code without a barrier in between is over for all threads of a block before any of them comes to that.

    s[t] = x;  barrier;  if (t < 2) s[t] += s[t + 2];  barrier;  if (t < 1) s[t] += s[t + 1];  barrier;  y = s[0];
    interval 0           interval 1                              interval 2                              interval 3
"""

from __future__ import annotations

from jax_enzyme.ad.device.convergence import meets
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock


class Intervals:
    """The number of the interval of each instruction of a function."""

    def __init__(self, cfg: Cfg) -> None:
        pieces: dict[BasicBlock, list[int]] = {}
        self._piece_of: dict[Instruction, int] = {}
        count = 0
        for block in cfg.rpo:
            pieces[block] = [count]
            for instruction in block.instructions:
                self._piece_of[instruction] = pieces[block][-1]
                if meets(instruction):
                    pieces[block].append(count := count + 1)
            count += 1
        near: dict[int, list[int]] = {piece: [] for own in pieces.values() for piece in own}
        for block, own in pieces.items():
            for target in cfg.succs[block]:
                near[own[-1]].append(pieces[target][0])
                near[pieces[target][0]].append(own[-1])
        self._interval: dict[int, int] = {}
        for piece in near:
            if piece not in self._interval:
                self._interval.update(dict.fromkeys(reached([piece], near.__getitem__), piece))

    def of(self, instruction: Instruction) -> int:
        return self._interval[self._piece_of[instruction]]
