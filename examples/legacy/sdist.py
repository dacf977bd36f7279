"""Sources of a public package, as pip finds them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DownloadError(Exception):
    """What pip said when it could not download the sources."""


@contextmanager
def sources(package: str) -> Iterator[Path]:
    """The unpacked sources of `package`, given with its version (`name==version`), in a folder that is removed behind
    the block. They are downloaded by pip and not built. DownloadError where pip cannot."""
    name = package.partition("=")[0]
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as made:
        folder = Path(made)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name, "-d", made]
        done = subprocess.run([*command, package], capture_output=True, text=True)
        archives = list(folder.glob("*.tar.gz"))
        if done.returncode or not archives:
            raise DownloadError(f"pip could not download the sources of {package}:\n{done.stderr}")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(folder, filter="data")
        yield next(path for path in folder.iterdir() if path.is_dir())
