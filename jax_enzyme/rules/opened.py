"""What functions that open files, look for them, remove or rename them do to what these hold: C's, C++'s, Rust's and
MPI's, by their names and by how they are asked. Statements of Fortran: `analysis.fortran_io`."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping

from jax_enzyme.classes import dataclass
from jax_enzyme.rules.streams import of_streams


class Way(enum.Flag):
    """What happens with a file."""

    LOOKS = enum.auto()
    """What it holds, or whether it is there, matters."""
    CHANGES = enum.auto()
    REPLACES = enum.auto()
    """It is empty from now on, whatever it was."""
    CONSUMES = enum.auto()
    """What is read is not there a second time."""


ANYTHING = Way.LOOKS | Way.CHANGES


@dataclass(frozen=True)
class Opening:
    """Which argument names the file (None: none that is known), and what happens to it, as an argument says that may be
    a constant: the `mode`, if there is one."""

    name: int | None
    ways: Callable[[str | int | None], Way]
    mode: int | None = None


def _of_text(mode: str | int | None) -> Way:
    if not isinstance(mode, str):
        return ANYTHING
    match mode[:1], "+" in mode:
        case "w", _:
            return Way.REPLACES
        case "r", False:
            return Way.LOOKS
        case "a", False:
            return Way.CHANGES
        case _:
            return ANYTHING


_O_WRONLY, _O_ACCMODE, _O_CREAT, _O_EXCL, _O_TRUNC = 1, 3, 0o100, 0o200, 0o1000


def _of_flags(mode: str | int | None) -> Way:
    if not isinstance(mode, int):
        return ANYTHING
    if mode & _O_TRUNC:
        return Way.REPLACES
    if mode & (_O_ACCMODE | _O_EXCL) == _O_WRONLY:
        return Way.CHANGES
    return ANYTHING if mode & (_O_ACCMODE | _O_CREAT) else Way.LOOKS


_APP, _IN, _OUT, _TRUNC = 1, 8, 16, 32


def _of_openmode(mode: str | int | None) -> Way:
    """As libc++ numbers it."""
    if not isinstance(mode, int):
        return ANYTHING
    if mode & _TRUNC or mode & (_APP | _IN | _OUT) == _OUT:
        return Way.REPLACES
    return Way.LOOKS if mode & (_APP | _IN | _OUT) == _IN else ANYTHING


_RDONLY, _WRONLY, _DELETE_ON_CLOSE, _EXCL = 2, 4, 16, 64


def _of_amode(mode: str | int | None) -> Way:
    """As all MPIs number it. A file that must not be there yet holds what the kernel has written."""
    if not isinstance(mode, int):
        return ANYTHING
    if mode & _EXCL:
        return Way.REPLACES
    if mode & _WRONLY:
        return Way.CHANGES
    return Way.LOOKS if mode & _RDONLY and not mode & _DELETE_ON_CLOSE else ANYTHING


def _of_pipe(mode: str | int | None) -> Way:
    """What a command says is something else each time."""
    return Way.CHANGES if isinstance(mode, str) and mode.startswith("w") else Way.CONSUMES


def _always(way: Way) -> Callable[[object], Way]:
    return lambda _: way


_LOOKS, _CHANGES = Opening(0, _always(Way.LOOKS)), Opening(0, _always(Way.CHANGES))
_SOMETHING, _ANY_CHANGES = Opening(None, _always(ANYTHING)), Opening(None, _always(Way.CHANGES))
"""Names that count from a folder which nobody follows, or that mean another file from now on."""
_FUNCTIONS: Mapping[str, tuple[Opening, ...]] = {
    **dict.fromkeys("fopen fopen64 freopen freopen64".split(), (Opening(0, _of_text, 1),)),
    **dict.fromkeys("open open64".split(), (Opening(0, _of_flags, 1),)),
    **dict.fromkeys("openat openat64".split(), (Opening(None, _of_flags, 2),)),
    **dict.fromkeys("creat creat64".split(), (Opening(0, _always(Way.REPLACES)),)),
    **dict.fromkeys(("system", "_FortranAExecuteCommandLine"), (_ANY_CHANGES,)),
    "popen": (Opening(None, _of_pipe, 1),),
    **dict.fromkeys("access stat lstat stat64 lstat64 opendir readlink".split(), (_LOOKS,)),
    **dict.fromkeys("faccessat fstatat fstatat64 statx readlinkat".split(), (Opening(None, _always(Way.LOOKS)),)),
    **dict.fromkeys("remove unlink rmdir mkdir mkfifo mknod truncate truncate64".split(), (_CHANGES,)),
    **dict.fromkeys("unlinkat mkdirat mkfifoat mknodat symlinkat chdir fchdir".split(), (_ANY_CHANGES,)),
    **dict.fromkeys("renameat renameat2 linkat".split(), (_SOMETHING,)),
    **dict.fromkeys("rename link symlink".split(), (Opening(0, _always(ANYTHING)), Opening(1, _always(Way.CHANGES)))),
    "MPI_File_open": (Opening(1, _of_amode, 2),),
    "MPI_File_delete": (_CHANGES,),
}
_STANDARD_INPUT = re.compile(
    r"(__isoc\d+_)?v?scanf$|getchar(_unlocked)?$|gets$|getwchar$|_(?:R|ZN)\w*3std2io5stdio5stdin"
)
_CPP = re.compile(r"_ZNSt3__1\d+basic_[io]?f(?:stream|ilebuf)\w*E(?:C[12]E|4openE)(PKc|RKNS_12basic_string)\w*j$")
_CPP_FOLDERS = re.compile(r"_ZNK?St3__14__fs10filesystem")
_CPP_CHANGES = re.compile(
    r"filesystem\d+__(?:rename|remove|copy|create|resize|permissions|current_path|last_write_time)"
)
_RUST = re.compile(r"_(?:R|ZN)\w*3std(?:3sys)?2fs")
"""What `std::fs` has; much of it is inlined, down to `std::sys::fs`."""
_RUST_OPEN_FILES = re.compile(r"2io(?:4Read|4Seek|5Write)|4File\d")
_RUST_READS = re.compile(r"2fs\d+(?:read|metadata|symlink_metadata|exists|canonicalize)")
_RUST_REPLACES = re.compile(r"2fs5write5inner")
_RUST_TWO = re.compile(r"2fs\d+(?:rename|copy|hard_link|symlink)")
_RUST_MAKES = re.compile(r"2fs\d+(?:remove|create_dir|set_)|10DirBuilder\d+_*create")
_RUST_CHANGES = re.compile(r"2fs\w*\d_*(?:write|create|remove|rename|copy|set_|hard_link|symlink)")


def openings(name: str, arguments: int) -> tuple[Opening, ...]:
    """What a function with so many arguments does to files; nothing for most."""
    if known := _FUNCTIONS.get(name):
        return known
    if of_streams(name) and (found := _CPP.match(name)) is not None:
        return (Opening(1 if found[1] == "PKc" else None, _of_openmode, arguments - 1),)
    if _CPP_FOLDERS.match(name) is not None:
        return (_ANY_CHANGES if _CPP_CHANGES.search(name) else Opening(None, _always(Way.LOOKS)),)
    return (_SOMETHING,) if name.lower().startswith(("mpi_file_open", "mpi_file_delete")) else ()


def in_rust(name: str, writes: bool) -> tuple[Way, ...]:
    """What a function of Rust's library does to the files whose paths it is given, one after the other, in a program of
    which is known whether it `writes` any, since the options that one is opened with do not say; nothing for others."""
    if _RUST.match(name) is None:
        return ()
    if _RUST_REPLACES.search(name):
        return (Way.REPLACES,)
    if _RUST_TWO.search(name):
        return (ANYTHING if "rename" in name else Way.LOOKS, Way.CHANGES)
    if _RUST_MAKES.search(name):
        return (Way.CHANGES,)
    return (Way.LOOKS if not writes or _RUST_READS.search(name) else ANYTHING,)


def has_path(name: str) -> bool:
    """Whether a function of Rust's library that has to do with files is given paths, and not a file that is open."""
    return _RUST_OPEN_FILES.search(name) is None


def writes_in_rust(name: str) -> bool:
    """Whether a function of Rust's library may write to a file, or put another one in its place."""
    return _RUST.match(name) is not None and _RUST_CHANGES.search(name) is not None


def reads_by_mpi(name: str) -> bool:
    """Whether a function of MPI, of C's or Fortran's interface, reads a file."""
    return name.lower().startswith(("mpi_file_read", "mpi_file_iread"))


def maps_files(name: str) -> bool:
    """Whether a function makes a file a part of memory."""
    return name in ("mmap", "mmap64")


def reads_standard_input(name: str) -> bool:
    """Whether a function reads what somebody types."""
    return _STANDARD_INPUT.match(name) is not None
