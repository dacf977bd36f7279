"""Which source files are likely to define a function, told from their text: what a kernel needs is compiled first.

A name that none is likely to define may be one that macros make. Then come the sources that are likely to define a name
for which a macro puts it, then those that include a file which defines it (functions that are inline everywhere but in
one source), then those likely to define a part of it, then all that mention a part of it anywhere, in files that they
include too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

from jax_enzyme.classes import dataclass
from jax_enzyme.frontends.common_blocks import CONTINUED, Commons, commons, with_values
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir.reach import reached

_C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_DECLARED = re.compile(r"\bextern\b[^;{}=\"]*;")
_FORTRAN = re.compile(r"^(?!\*|c(?:\W|$))[^\n!]*?\b(?:subroutine|function|entry|procedure)\b([^\n!]*)", re.I | re.M)
"""Not in comments, which in the old form are lines with `*` or `C` in front: they mention what others define."""
_GENERIC = re.compile(
    r"^[ \t]*interface[ \t]+(\w+)[ \t]*(?:![^\n]*)?\r?$(.*?)^[ \t]*end[ \t]*interface\b", re.I | re.M | re.S
)
_PROCEDURES = re.compile(r"^[ \t]*(?:module[ \t]+)?procedure\b(?:[ \t]*::)?([^!\n]*)", re.I | re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")
_LOOSE = re.compile(r"\b[A-Za-z_]\w*\b(?!\s*\()")
_NO_CODE = re.compile(
    r"^[ \t]*#[ \t]*(?:define[ \t]+\w+|(?:undef|ifn?def)\b.*)|\b(?:__)?format(?:__)?[ \t]*\([ \t]*\w+", re.M
)
"""What the preprocessor puts something else for, or asks for, and `__attribute__((format(printf, 1, 2)))`: names that
no code has behind it."""
_JOINED = re.compile(r"\\\r?\n")
_C_LINKAGE = re.compile(r'\bextern\s*"C"')
_PARENTHESIS = re.compile(r"[()]")
_INCLUDE = re.compile(r"""^[ \t]*#?[ \t]*include[ \t]*["']([^"'\n]+)["']""", re.M | re.I)
_INCLUDE_OF_FOLDERS = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([^>\n]+)>", re.M)
_BARE = re.compile(r"(?:\A|,)\s*([A-Za-z_]\w*)\s*(?=,|\Z)")
"""What stands alone between commas."""
_LABEL = re.compile(r"""\b(?:__asm__|__asm|asm)\s*\(\s*((?:"[^"\n]*"\s*)+)\)""")
"""What a declaration says that a symbol is called, in C and C++."""
_AT_FILE_SCOPE = re.compile(r"^[A-Za-z_]\w*[ \t]*\(([^()]*)\)", re.M)
_ALIAS = re.compile(r"[;{}]|\b__attribute__\s*\(\(\s*(?:__)?alias\b")
"""With what may end the statement before it."""
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([^()]*)\))?(.*)$", re.M)
_STRING = re.compile(r'"[^"]*"')
_BODY = ("(", "{")
"""What stands behind the call of a macro that makes the name of a function, and behind one that makes its head."""
_STATEMENTS = ("if", "while", "switch", "for")
_ENDS = frozenset(("return", "break", "continue"))
"""Words in front of `;` that are no variables: `return_` is a function of some libraries."""
_VARIABLE = re.compile(r"\b([A-Za-z_]\w*)\s*(?:\[[^;{}]*\]\s*)?[=;]")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_RENAMES = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([A-Za-z_]\w*)[ \t]*(?:/[/*].*)?\r?$", re.M)
_INCLUDE_OF_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+([A-Za-z_]\w*)", re.M)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
_FOLDER = re.compile(r"-(?:I|iquote|isystem)=?(.*)")
_HIDDEN = ("-include", "-imacros", "@")
"""Flags that stand for text which is not looked at."""
PASTING = "##"
"""Among the words of a text whose macros paste."""


def likely(source: Source, flags: Sequence[str], texts: Texts) -> frozenset[str] | None:
    """The names, in lower case, that a source may define; None where the text does not tell. Those of COMMON blocks are
    among them where it may give these values."""
    if source.lang not in ("c", "c++", "fortran"):
        return None
    if source.lang == "fortran":
        words = (word for match in _FORTRAN.finditer(source.text) for word in _WORD.findall(match[1]))
        return with_values(part.commons for part in texts.of(source, flags)).union(word.lower() for word in words)
    own = texts.own(source)
    return own.defined | own.labels


def bound(source: Source) -> frozenset[str]:
    """All words, in lower case, of statements of a Fortran source that bind something to C."""
    text = CONTINUED.sub(" ", source.text.lower())
    return frozenset(word for line in text.splitlines() if "bind" in line for word in _WORD.findall(line))


def generic(source: Source, name: str) -> list[str]:
    """The procedures, in lower case, that a Fortran source calls by a name in common."""
    text = CONTINUED.sub(" ", source.text) if source.lang == "fortran" else ""
    bodies = [match[2] for match in _GENERIC.finditer(text) if match[1].lower() == name.lower()]
    lines = [match[1].lower() for body in bodies for match in _PROCEDURES.finditer(body)]
    return [word for line in lines for word in _WORD.findall(line)]


def parts(name: str) -> list[str]:
    """What is left of a name without what stands before one of its underscores, or behind one; the longest first."""
    words = name.split("_")
    cuts = range(1, len(words))
    found = [*("_".join(words[cut:]) for cut in cuts), *("_".join(words[:cut]) for cut in cuts)]
    return sorted(filter(None, found), key=len, reverse=True)


def mentioned(source: Source, flags: Sequence[str], texts: Texts) -> frozenset[str] | None:
    """All words, in lower case, of a source, of the files that it includes by names in quotes, and of the compiler's
    flags; `##` among them where macros paste. None where names are not made of such words, as in C++."""
    if source.lang not in ("c", "fortran") or any(flag.startswith(_HIDDEN) for flag in flags):
        return None
    return _words(texts.of(source, flags), flags)


def every_word(source: Source, flags: Sequence[str], texts: Texts) -> frozenset[str] | None:
    """All words, in lower case, of a source, of what it includes that is no library's, and of the flags; None where
    what it defines may be called otherwise: there is text that is not looked at, or Fortran's preprocessor joins
    words."""
    if source.lang not in ("c", "c++", "fortran") or any(flag.startswith(_HIDDEN) for flag in flags):
        return None
    found = texts.of(source, flags)
    if source.lang == "fortran" and any("#" in text.text for text in found):
        return None
    folders = tuple(_folders(flags)) if source.lang == "c++" else ()
    beside = (folder / name for text in found for name in text.of_folders for folder in folders)
    if _includes_unseen(found, flags) or any(map(Path.is_file, beside)):
        return None
    return _words(found, flags)


def renamed(source: Source, flags: Sequence[str], texts: Texts) -> Mapping[str, frozenset[str]]:
    """The names, in lower case, for which macros without parameters put others, by those: `y0` for `bessel_y0` after
    `#define y0 bessel_y0`, in the source or in files that it includes by names in quotes."""
    found: dict[str, set[str]] = {}
    if source.lang == "c":
        for text in texts.of(source, flags):
            for macro, name in text.renamed:
                found.setdefault(name, set()).add(macro)
    return {name: frozenset(macros) for name, macros in found.items()}


class Texts:
    """The texts of sources, each with those that it includes. Each is looked through once, and where a file is that one
    includes is looked up once, not for each of the sources that include both: a library of a thousand files may have as
    many headers. Of the flags only folders matter here: sources that are compiled once more have the same texts."""

    def __init__(self) -> None:
        self._own: dict[Source, _Text] = {}
        self._files: dict[tuple[str, str, tuple[Path, ...]], list[tuple[str, str]]] = {}
        self._of: dict[tuple[Source, tuple[Path, ...]], list[_Text]] = {}

    def own(self, source: Source) -> _Text:
        """The text of a source itself."""
        if source not in self._own:
            self._own[source] = _scanned(source.contents)
        return self._own[source]

    def of(self, source: Source, flags: Sequence[str]) -> list[_Text]:
        """A source, and the files that it includes, directly or not: by names in quotes, and in C by others from
        folders of the flags. (In C++ there are libraries, which are large, and whose functions have other names.)"""
        key = source, tuple(_folders(flags))
        if key not in self._of:
            self._of[key] = list(self._read(*key))
        return self._of[key]

    def _read(self, source: Source, folders: tuple[Path, ...]) -> Iterator[_Text]:
        own = self.own(source)
        yield own
        home = source.path.parent if source.path is not None else Path.cwd()
        pending = list(_included(own, source.lang, home, folders))
        seen: set[str] = set()
        while pending:
            path, real = pending.pop()
            if real in seen:
                continue
            seen.add(real)
            text = _scanned_file(real, os.stat(real).st_mtime_ns)
            yield text
            key = (path, source.lang, folders)
            if key not in self._files:
                self._files[key] = list(_included(text, source.lang, Path(path).parent, folders))
            pending += self._files[key]

    def hinted(self, source: Source, flags: Sequence[str]) -> frozenset[str] | None:
        """The names, in lower case, that a source in C or C++ may define though its text does not show it: functions
        with bodies in files that it includes, the words of the preprocessor's lines, and those without parentheses
        behind them, of which macros, aliases and labels may make functions. None where flags or macros stand for
        text."""
        if source.lang not in ("c", "c++"):
            return frozenset()
        if any(flag.startswith(_HIDDEN) for flag in flags):
            return None
        own, *others = self.of(source, flags)
        if _includes_unseen((own, *others), flags):
            return None
        if source.lang == "c++":  # libraries in headers are large, and their functions have other names
            others = [text for text in others if text.has_c_linkage]
        found = (text.defined | text.loose for text in (own, *others))
        return frozenset(_word_set(" ".join(flags))).union(*found)

    def makes(self, source: Source, flags: Sequence[str], names: Collection[str]) -> bool | None:
        """Whether a source in C or C++, or a file that it includes by its name in quotes, seems to give a body to one
        of some functions, in lower case: with one behind it, by macros, aliases or labels. Calls, and variables of such
        names, are left out, as there are many. None where it includes what a macro names."""
        if source.lang not in ("c", "c++"):
            return False
        texts = [text for text in self.of(source, flags) if source.lang == "c" or text.has_c_linkage]
        if _includes_unseen(texts, flags):
            return None
        return any(not text.making.isdisjoint(names) for text in texts)

    def pasted(self, source: Source, flags: Sequence[str], *, all_words: bool) -> frozenset[str]:
        """The words, in lower case, that macros of a source in C or C++ may paste together into the name of a function:
        those that stand where macros are called to define one and what these are made of, or simply all; none of a
        source whose macros paste nothing."""
        texts = self.of(source, flags) if source.lang in ("c", "c++") else []
        if not any(PASTING in text.text for text in texts):
            return frozenset()
        if all_words:
            return _words(texts, flags)
        of_flags = _words((), flags)
        given: dict[str, frozenset[str]] = {}
        for name, words in (call for text in texts for call in text.at_definitions):
            given[name] = words | given.get(name, frozenset())

        def put_for(word: str) -> Iterator[str]:
            return chain.from_iterable(text.bodies_of_macros.get(word, ()) for text in texts)

        pasting = (given.keys() & of_flags) | (given.keys() & _that_lead_to(PASTING, texts))
        return frozenset(reached(of_flags.union(*({name, *given[name]} for name in pasting)), put_for))


def _words(texts: Collection[_Text], flags: Sequence[str]) -> frozenset[str]:
    """All words, in lower case, of texts and flags."""
    return _word_set(" ".join(flags)).union(*(text.words for text in texts))


def _that_lead_to(word: str, texts: Collection[_Text]) -> set[str]:
    """The macros of some texts for which a word is put, in the end."""
    found, new = {word}, {word}
    while new:
        macros = (macro for text in texts for macro in text.bodies_of_macros.items())
        new = {name for name, words in macros if name not in found and not words.isdisjoint(found)}
        found |= new
    return found


def _includes_unseen(texts: Collection[_Text], flags: Sequence[str]) -> bool:
    """Whether some texts include what a macro names that has a meaning. `#include USER_CONFIG`, which nobody defines,
    stands where it is not compiled."""
    named = frozenset[str]().union(*(text.macros_included for text in texts))
    return any(
        name.startswith("__") or any(name in text.macros for text in texts) or any(name in flag for flag in flags)
        for name in named
    )


def _included(text: _Text, lang: str, home: Path, folders: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """The paths of the files that a text includes, and the real ones."""
    sought = [(name, (home, Path.cwd(), *folders)) for name in text.files]
    sought += [(name, folders) for name in (text.of_folders if lang == "c" else ())]
    for name, places in sought:
        path = next((str(at) for folder in places if (at := folder / name).is_file()), None)
        if path is not None:
            yield path, os.path.realpath(path)


def included(source: Source, flags: Sequence[str]) -> frozenset[str]:
    """The real paths of the files that a source itself includes by names in quotes."""
    home = source.path.parent if source.path is not None else Path.cwd()
    folders = (home, Path.cwd(), *_folders(flags))
    names = _INCLUDE.findall(source.text)
    return frozenset(os.path.realpath(folder / n) for n in names for folder in folders if (folder / n).is_file())


def headers_with(source: Source, flags: Sequence[str], names: Sequence[str]) -> list[Path]:
    """The files that a C source itself includes, from beside it or from folders of the flags, and in which a function
    of one of some names, in lower case, has its body."""
    if source.lang != "c":
        return []
    files = (folder / file for file in _INCLUDE_OF_FOLDERS.findall(source.text) for folder in _folders(flags))
    paths = [*map(Path, sorted(included(source, flags))), *filter(Path.is_file, files)]
    texts = ((path, _scanned_file(str(path), path.stat().st_mtime_ns)) for path in paths)
    return [path for path, text in texts if not text.bodies.isdisjoint(names)]


def _folders(flags: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for index, flag in enumerate(flags):
        if match := _FOLDER.fullmatch(flag):
            found += map(Path, [match[1]] if match[1] else flags[index + 1 : index + 2])
    return found


@dataclass(frozen=True)
class _Text:
    """A text, the files that it includes by names in quotes and by others, and its macros that put one name for
    another."""

    text: str
    files: tuple[str, ...]
    of_folders: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]

    @cached_property
    def commons(self) -> Commons:
        return commons(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """All its words, in lower case."""
        return _word_set(self.text)

    @cached_property
    def macros_included(self) -> frozenset[str]:
        """The macros that stand for the names of files that it includes."""
        return frozenset(_INCLUDE_OF_MACRO.findall(self.text))

    @cached_property
    def macros(self) -> frozenset[str]:
        return frozenset(_DEFINE.findall(self.text))

    @cached_property
    def has_c_linkage(self) -> bool:
        return _C_LINKAGE.search(self.text) is not None

    @cached_property
    def _code(self) -> str:
        """The text with whole lines, and without comments."""
        return _C_COMMENT.sub(" ", _JOINED.sub("", self.text))

    @cached_property
    def bodies(self) -> frozenset[str]:
        """The functions, in lower case, that have bodies in it."""
        text = self._code
        closes = _closing(text)
        ends = ((match[1].lower(), closes.get(match.end() - 1)) for match in _CALLED.finditer(text))
        return frozenset(
            name for name, end in ends if end is not None and text[end + 1 : end + 200].lstrip()[:1] == "{"
        )

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names, in lower case, that it is likely to define."""
        return frozenset(_defined(_DECLARED.sub(" ", self._code)))

    @cached_property
    def labels(self) -> frozenset[str]:
        """What it says that symbols are called, in lower case."""
        labels = ("".join(re.findall(r'"([^"]*)"', match[1])) for match in _LABEL.finditer(self._code))
        return frozenset(label.lower() for label in labels)

    @cached_property
    def loose(self) -> frozenset[str]:
        """The words, in lower case, without parentheses behind them, or in lines of the preprocessor."""
        words = (*_LOOSE.findall(self._code), *_WORD.findall(self._of_preprocessor))
        return frozenset(word.lower() for word in words)

    @cached_property
    def _of_preprocessor(self) -> str:
        return "\n".join(line for line in self._code.splitlines() if line.lstrip().startswith("#"))

    @cached_property
    def making(self) -> frozenset[str]:
        """The functions, in lower case, that have bodies in it, or that macros, aliases and labels may make."""
        return self.bodies | self.made

    @cached_property
    def at_definitions(self) -> Sequence[tuple[str, frozenset[str]]]:
        """What is called where functions are defined, and the words alone in its parentheses, in lower case: `name`,
        `sin` and `f` of `NAME(sin, f)(double x) {`."""
        text = self._code
        closes = _closing(text)
        ends = ((match[1], match.end(), closes.get(match.end() - 1)) for match in _CALLED.finditer(text))
        given = [
            (name, text[at:end])
            for name, at, end in ends
            if end is not None and text[end + 1 : end + 200].lstrip()[:1] in _BODY
        ]
        given += [(match[0].partition("(")[0].rstrip(), match[1]) for match in _AT_FILE_SCOPE.finditer(text)]
        return [(name.lower(), frozenset(word.lower() for word in _BARE.findall(words))) for name, words in given]

    @cached_property
    def bodies_of_macros(self) -> Mapping[str, frozenset[str]]:
        """The macros and the words of what is put for them, but for their parameters, in lower case."""
        found: dict[str, frozenset[str]] = {}
        for name, given, body in _MACRO.findall(self._code):
            words = _word_set(_STRING.sub("", body)) - _word_set(given)
            found[name.lower()] = words | found.get(name.lower(), frozenset())
        return found

    @cached_property
    def made(self) -> frozenset[str]:
        """The words, in lower case, of which macros that stand at the beginning of a line may make functions, or that
        are the names of aliases and labels."""
        given = (word for match in _AT_FILE_SCOPE.finditer(self._code) for word in _BARE.findall(match[1]))
        labels = " ".join((*_aliases(self._code), *(match[1] for match in _LABEL.finditer(self._code))))
        words = (*_LOOSE.findall(_NO_CODE.sub("", self._of_preprocessor)), *given, *_WORD.findall(labels))
        return frozenset(word.lower() for word in words)


@lru_cache(maxsize=1024)
def _scanned_file(path: str, changed: int) -> _Text:
    return _scanned(Path(path).read_bytes())


def _scanned(contents: bytes) -> _Text:
    text = contents.decode(errors="replace")
    macros = ((macro.lower(), name.lower()) for macro, name in _RENAMES.findall(text))
    return _Text(text, tuple(_INCLUDE.findall(text)), tuple(_INCLUDE_OF_FOLDERS.findall(text)), tuple(macros))


def _word_set(text: str) -> frozenset[str]:
    words = (word.lower() for word in _WORD.findall(_C_COMMENT.sub(" ", text)))
    return frozenset((*words, PASTING)) if PASTING in text else frozenset(words)


def _defined(text: str) -> set[str]:
    """Names with parentheses behind them, and behind these a body or, in old C, declarations of parameters; with those
    that stand alone in parentheses, as in `NAME(f)(x) {` and `DEFINE(f) {`. And variables: names before `=`, `[` and
    `;`."""
    found: set[str] = set()
    closes = _closing(text)
    for match in _CALLED.finditer(text):
        end = closes.get(match.end() - 1)
        behind = text[end + 1 : end + 200].lstrip() if end is not None else ""
        if behind[:1] == "{" and end is not None and match[1] not in _STATEMENTS:
            found.update(word.lower() for word in _BARE.findall(text[match.end() : end]))
        if behind[:1] in ("{", ":") or behind[:1].isalpha() or behind.startswith("_"):
            found.add(match[1].lower())
        elif behind.startswith("(") and end is not None:
            found.update(word.lower() for word in _WORD.findall(text[match.end() : end]))
    found.update(match[1].lower() for match in _VARIABLE.finditer(text))
    return found - _ENDS


def _aliases(text: str) -> Iterator[str]:
    """What stands before each attribute that makes an alias, in its statement."""
    start = 0
    for match in _ALIAS.finditer(text):
        if len(match[0]) > 1:
            yield text[start : match.start()]
        start = match.end()


def _closing(text: str) -> dict[int, int]:
    """The place where each parenthesis closes."""
    opened: list[int] = []
    closes: dict[int, int] = {}
    for match in _PARENTHESIS.finditer(text):
        if match[0] == "(":
            opened.append(match.start())
        elif opened:
            closes[opened.pop()] = match.start()
    return closes
