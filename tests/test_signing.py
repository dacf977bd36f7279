"""Keys and signatures: what is made on first use, what is trusted, and what is refused."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jax_enzyme as je
from jax_enzyme import signing
from jax_enzyme.signing import own_key_path, signed, verified

SIGN = "from jax_enzyme.signing import signed; print(signed('recipe', 'the code'))"


@pytest.fixture(autouse=True)
def _own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that knows nothing, of a user with an empty home."""
    monkeypatch.setattr(signing, "_process", signing._Process())
    monkeypatch.delenv("JAX_ENZYME_TRUST", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    yield
    signing._parsed.cache_clear()


def forget() -> None:
    """Another process of the same user."""
    signing._process = signing._Process()


def of_another(tmp_path: Path) -> tuple[str, Path]:
    """What another user signed, and that user's key."""
    env = os.environ | {"XDG_DATA_HOME": str(tmp_path / "other")}
    done = subprocess.run([sys.executable, "-c", SIGN], env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip(), tmp_path / "other" / "jax_enzyme" / "key"


def test_the_own_key_is_made_on_first_use_and_kept() -> None:
    text = signed("recipe", "the code")
    status = own_key_path().stat()
    assert stat.S_IMODE(status.st_mode) == 0o600 and status.st_size == 32
    assert stat.S_IMODE(own_key_path().parent.stat().st_mode) == 0o700
    assert [path.name for path in own_key_path().parent.iterdir()] == ["key"]
    forget()
    assert verified("recipe", text) == "the code"
    assert signed("recipe", "the code") == text


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("the code", "no! code"),
        lambda text: text + "x",
        lambda text: text[:-1],
        lambda text: "",
        lambda text: "3|[]|eJw=|{}",
        lambda text: re.sub(r"\|[0-9a-f]{64}\|", f"|{'0' * 64}|", text),
        lambda text: re.sub(r"\|[0-9a-f]{64}\|", "||", text),
        lambda text: text.replace("the code", "die Tür!"),
    ],
)
def test_what_was_changed_is_refused(change: object) -> None:
    text = signed("recipe", "the code")
    with pytest.raises(je.LoweringError):
        verified("recipe", change(text))  # type: ignore[operator]
    with pytest.raises(je.LoweringError):
        verified("another purpose", text)


def test_a_change_is_told_from_another_maker() -> None:
    with pytest.raises(je.LoweringError, match="the program was changed"):
        verified("recipe", signed("recipe", "the code").replace("the code", "no! code"))


def test_others_are_refused_until_their_key_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, key = of_another(tmp_path)
    with pytest.raises(je.LoweringError, match="not made by this user") as error:
        verified("recipe", text)
    assert "jax_enzyme.trust" in str(error.value) and "JAX_ENZYME_TRUST" in str(error.value)
    digits = tmp_path / "digits"
    digits.write_text(key.read_bytes().hex() + "\n")
    for given in (key, str(key), key.read_bytes(), key.read_bytes().hex(), digits):
        forget()
        je.trust(given)
        assert verified("recipe", text) == "the code"
        assert signed("recipe", "the code") != text  # still the own key
    forget()
    monkeypatch.setenv("JAX_ENZYME_TRUST", f"{digits}{os.pathsep}{'0' * 64}")
    assert verified("recipe", text) == "the code"
    assert signed("recipe", "the code") == text  # all machines of a cluster sign alike


def test_a_program_is_trusted_alone(tmp_path: Path) -> None:
    text, _ = of_another(tmp_path)
    program = tmp_path / "program"
    program.write_bytes(b"\x00\xff" + text.encode() + b"\x00 and what follows")
    je.trust(program)
    assert verified("recipe", text) == "the code"
    with pytest.raises(je.LoweringError):
        verified("recipe", text.replace("the code", "no! code"))


def test_what_cannot_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_key, other = tmp_path / "open", tmp_path / "text"
    open_key.write_bytes(bytes(32))
    open_key.chmod(0o666)
    other.write_text("no key")
    for given, said in (
        (b"short", "32 bytes"),
        (3, "a key or a path"),
        (tmp_path / "none", "cannot be read"),
        (open_key, "everybody may write"),
        (other, "neither a key"),
    ):
        with pytest.raises(je.ArgumentError, match=said):
            je.trust(given)  # type: ignore[arg-type]
    monkeypatch.setenv("JAX_ENZYME_TRUST", str(other))
    with pytest.raises(je.ArgumentError, match="JAX_ENZYME_TRUST"):
        signed("recipe", "the code")


def damaged(path: Path) -> None:
    path.write_bytes(b"short")
    path.chmod(0o600)


def readable(path: Path) -> None:
    path.write_bytes(bytes(32))
    path.chmod(0o644)


def in_the_way(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file where the folder should be")


@pytest.mark.parametrize("harm", [damaged, readable, in_the_way])
def test_a_key_that_cannot_be_kept_lives_as_long_as_the_process(harm: object) -> None:
    own_key_path().parent.mkdir(parents=True)
    harm(own_key_path())  # type: ignore[operator]
    with pytest.warns(UserWarning, match="cannot keep its key"):
        text = signed("recipe", "the code")
    assert verified("recipe", text) == "the code"  # without another warning


def test_all_of_several_processes_have_one_key() -> None:
    """And threads and forks of each."""
    race = (
        "import os, sys, threading\n"
        "from jax_enzyme.signing import signed\n"
        "sys.stdin.readline()\n"
        "child = os.fork()\n"
        "found = []\n"
        "threads = [threading.Thread(target=lambda: found.append(signed('p', 't'))) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "if child: os.waitpid(child, 0)\n"
        "os.write(1, ''.join(f'{x}\\n' for x in found).encode())\n"
    )
    several = [
        subprocess.Popen([sys.executable, "-c", race], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in several:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = [line for process in several for line in process.communicate()[0].splitlines()]
    assert len(lines) == 24 and len(set(lines)) == 1
