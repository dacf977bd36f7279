"""C's functions over files and streams: which only print, which may read what was written, and which do neither."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jax_enzyme.classes import dataclass
from jax_enzyme.rules.effects import effect
from jax_enzyme.rules.streams import of_streams
from jax_enzyme.rules.text import fills_memory, handles_text

STREAMS = frozenset("stdout stderr __stdoutp __stderrp".split())
CONSOLE = (1, 2)
OPENS = frozenset("fopen fopen64".split())
LENDS = OPENS | {"getenv"}
"""What returns memory of its own, in which there are no numbers of the program's: a stream, a text, or null."""


@dataclass(frozen=True)
class Printer:
    """Which arguments of a function that prints say where to (None: to the console), in which format, and how many
    elements or which character, which it returns."""

    stream: int | None = None
    format: int | None = None
    count: int | None = None


_SILENT = Printer()
_PRINTERS: Mapping[str, Printer] = {
    "printf": Printer(None, 0),
    "vprintf": Printer(None, 0),
    "__printf_chk": Printer(None, 1),
    "__vprintf_chk": Printer(None, 1),
    "fprintf": Printer(0, 1),
    "vfprintf": Printer(0, 1),
    "dprintf": Printer(0, 1),
    "__fprintf_chk": Printer(0, 2),
    "__vfprintf_chk": Printer(0, 2),
    **dict.fromkeys(("putchar", "putchar_unlocked"), Printer(None, None, 0)),
    **dict.fromkeys(("putc", "fputc", "fputc_unlocked"), Printer(1, None, 0)),
    "fputs": Printer(1),
    "fwrite": Printer(3, None, 2),
    "write": Printer(0, None, 2),
    **dict.fromkeys(("fflush", "setbuf", "setvbuf"), Printer(0)),
}

_READS = re.compile(
    r"(__isoc\d+_)?v?f?scanf$|fread(_unlocked)?$|fgets(_unlocked)?$|f?getc(har)?(_unlocked)?$|fgetw[cs]$|"
    r"(get(line|delim|w|s))$|(__)?p?read(v|64)?$|recv\w*$"
)
_HARMLESS = re.compile(
    r"(f|fd)?open(64)?$|fclose$|close$|creat(64)?$|tmpfile(64)?$|rewind$|f(seek|tell|sync|eof|error|ileno)o?(64)?$|"
    r"lseek(64)?$|clearerr$|fdatasync$|unlink$|remove$|rename$|mkdir$|access$|isatty$|setlocale$|f(un)?lockfile$|"
    r"strto\w+$|ato[fil]+$|str(n?cpy|n?cat|c?spn|pbrk|tok|error|ftime)(_r)?$|(local|gm)time(_r)?$|je[._]"
)
_REDIRECTS = frozenset("freopen freopen64 dup2 dup3".split())


def printer(name: str) -> Printer:
    """What is known of a function that only prints."""
    return _PRINTERS.get(name, _SILENT)


def reads(name: str) -> bool:
    """Whether a function brings in what a file holds when it is called."""
    return _READS.match(name) is not None or fills_memory(name)


def redirects(name: str) -> bool:
    """Whether what is printed may go to a file afterwards."""
    return name in _REDIRECTS


def may_share(name: str) -> bool:
    """Whether a function that no rule knows may make what is written to a file part of the kernel's memory, now or
    later (`mmap`, `open_memstream`, `pipe` and any function of somebody else's)."""
    known = effect(name) is not None or handles_text(name) or of_streams(name) or name.startswith("_FortranA")
    return not known and not reads(name) and _HARMLESS.match(name) is None
