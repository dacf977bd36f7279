"""The numbered nodes of a module, of which those that nobody asks for stay text.

    !7 = !DICompositeType(tag: DW_TAG_class_type, ...)       text until `module.metadata["7"]`

In C++ most of a module describes types, of which a kernel's own parameters lead to a few. What instructions and
functions lead to, and what is done to all nodes, sees no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping

from jax_enzyme.ir.metadata import MDNode

_TUPLES = ("!{", "distinct !{")
_ASKED_FOR = ("!DILocation(", "distinct !DILocation(", "distinct !DISubprogram(", "distinct !DILexicalBlock")
"""What every instruction leads to: it takes less to read them together."""


class Nodes(MutableMapping[str, MDNode]):
    """Nodes by number, in order. `texts` are what stands behind `!7 = `; `read` makes a node of that."""

    def __init__(self, texts: Mapping[str, str], read: Callable[[str], MDNode]) -> None:
        self._held: dict[str, MDNode | str] = dict(texts)
        self._read = read

    def __getitem__(self, number: str) -> MDNode:
        found = self._held[number]
        if isinstance(found, str):
            found = self._held[number] = self._read(found)
        return found

    def __setitem__(self, number: str, node: MDNode) -> None:
        self._held[number] = node

    def __delitem__(self, number: str) -> None:
        del self._held[number]

    def __contains__(self, number: object) -> bool:
        return number in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def copied(self, copy: Callable[[MDNode], MDNode]) -> Nodes:
        """Other nodes of the same text, where they are not read yet; copies of the others."""
        new = Nodes({}, self._read)
        new._held = {n: held if isinstance(held, str) else copy(held) for n, held in self._held.items()}
        return new

    def written(self, write: Callable[[MDNode], str]) -> Iterator[tuple[str, str]]:
        """Each number, and what stands behind it: where nobody has read that, it is as it was."""
        for number, held in self._held.items():
            yield number, held if isinstance(held, str) else write(held)

    def of(self, kind: str) -> Iterator[tuple[str, MDNode]]:
        """The nodes of one kind, such as `DILocalVariable`, or tuples, whose kind is empty: only they are read."""
        heads = (f"!{kind}(", f"distinct !{kind}(") if kind else _TUPLES
        for number, held in self._held.items():
            if held.startswith(heads) if isinstance(held, str) else held.kind == kind:
                yield number, self[number]


def of_kind(nodes: Mapping[str, MDNode], kind: str) -> Iterator[tuple[str, MDNode]]:
    """The nodes of one kind among the numbered ones of a module, with their numbers."""
    if isinstance(nodes, Nodes):
        return nodes.of(kind)
    return ((number, node) for number, node in nodes.items() if node.kind == kind)


def written(nodes: Mapping[str, MDNode], write: Callable[[MDNode], str]) -> Iterator[tuple[str, str]]:
    """The numbers of nodes, and what stands behind them in a text."""
    if isinstance(nodes, Nodes):
        return nodes.written(write)
    return ((number, write(node)) for number, node in nodes.items())


def split(text: str) -> tuple[str, dict[str, str]]:
    """Text of a module, as LLVM writes it, without the numbered nodes at its end; and those. Nodes that name values of
    the module, places, and all that is written otherwise stay where they are."""
    start = text.find("\n!0 = ") + 1
    if not start:
        return text, {}
    kept, found = [text[:start]], dict[str, str]()
    for line in text[start:].split("\n"):
        name, equals, node = line.partition(" = ")
        if equals and name[0] == "!" and name[1:].isdigit() and node[-1:] in (")", "}"):
            found[name[1:]] = node  # in order; what is read at once takes the place
            if "@" not in node and not node.startswith(_ASKED_FOR):
                continue
        kept.append(line + "\n")
    return "".join(kept), found
