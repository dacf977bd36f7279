"""A program: the LLVM IR that a front end made of a source, and the symbol that the kernel is."""

from __future__ import annotations

from functools import cached_property

from jax_enzyme.cache import digest
from jax_enzyme.classes import dataclass
from jax_enzyme.signature.launch import Launch


@dataclass(frozen=True)
class Program:
    """`ir` is the text of a whole module, not optimised yet, for no particular CPU; `lang` what the source was written
    in; `source_name` what to call it in messages; `launch` how a CUDA kernel is started, None for other languages;
    `device` the text of the module of the kernels that a host function of a CUDA source may launch, empty for all else;
    `libraries` the names or paths of shared libraries that have what it does not define. Equal contents are equal
    values, in every process."""

    ir: str
    symbol: str
    lang: str
    source_name: str
    launch: Launch | None = None
    device: str = ""
    libraries: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """A hex digest of the contents."""
        own = (self.ir, self.symbol, self.lang, self.source_name, str(self.launch or ""), self.device)
        return digest(*own, *self.libraries)

    def __repr__(self) -> str:
        return f"Program({self.symbol} from {self.source_name}, {self.lang}, {self.key[:12]})"
