"""The disk cache: whole entries or none, whatever happens to the folder."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from jax_enzyme.cache import DiskCache, digest


def test_put_and_get(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "a" / "b")
    assert cache.get("key") is None
    cache.put("key", b"one")
    cache.put("key", b"two")
    assert cache.get("key") == b"two"
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["key"]


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
def test_a_damaged_entry_is_absent(tmp_path: Path, damage: bytes) -> None:
    cache = DiskCache(tmp_path)
    cache.put("key", b"contents")
    (tmp_path / "key").write_bytes(damage)
    assert cache.get("key") is None
    cache.put("key", b"contents")
    assert cache.get("key") == b"contents"


def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("key", b"data")
    (tmp_path / "key").unlink()
    os.mkfifo(tmp_path / "key")
    assert cache.get("key") is None


def test_the_oldest_go_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=1000)
    for i in range(4):
        cache.put(f"k{i}", bytes(200))
        os.utime(tmp_path / f"k{i}", (1000 + i, 1000 + i))
    assert cache.get("k0") is not None  # used now: no longer the oldest
    cache.put("new", bytes(200))
    assert [k for k in ("k0", "k1", "k2", "k3", "new") if cache.get(k)] == ["k0", "k2", "k3", "new"]


def test_a_large_cache_is_not_looked_through_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays within a small part of its size, and few of many writers look."""
    looks = 0
    scan = os.scandir

    def counted(path: Any) -> Any:
        nonlocal looks
        looks += 1
        return scan(path)

    monkeypatch.setattr("jax_enzyme.cache.os.scandir", counted)
    cache = DiskCache(tmp_path, max_bytes=4_000_000)
    for i in range(600):
        cache.put(f"k{i}", os.urandom(4) + bytes(20_000))
    assert 20 < looks < 300  # twelve million bytes: about a hundred
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) < 5_500_000


def test_no_folder(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "file" / "below"):
        (tmp_path / "file").write_text("in the way")
        cache = DiskCache(folder)
        cache.put("key", b"x")
        assert cache.get("key") is None


def test_the_variable_moves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", str(tmp_path))
    assert DiskCache.named("ir").folder == tmp_path / "ir"
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", "")
    assert DiskCache.named("ir").folder is None
    monkeypatch.delenv("JAX_ENZYME_CACHE_DIR")
    assert "jax_enzyme" in str(DiskCache.named("ir").folder)


def test_many_writers(tmp_path: Path) -> None:
    seen: list[bytes | None] = []

    def work(byte: int) -> None:
        cache = DiskCache(tmp_path)
        for _ in range(50):
            cache.put("key", bytes([byte]) * 10000)
            seen.append(cache.get("key"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = {bytes([i]) * 10000 for i in range(4)}
    assert set(seen) <= whole


def test_digests_tell_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a") == digest(b"a")


def test_an_entry_is_bound_to_its_key_and_its_maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = DiskCache(tmp_path / "one"), DiskCache(tmp_path / "other")
    for cache, key in ((one, "a"), (one, "b"), (other, "a")):
        cache.put(key, f"{cache.folder} {key}".encode())
    for stolen in (tmp_path / "one" / "b", tmp_path / "other" / "a"):
        (tmp_path / "one" / "a").write_bytes(stolen.read_bytes())
        assert one.get("a") is None
    monkeypatch.setenv("JAX_ENZYME_TRUST", "0" * 64)
    assert one.get("b") is None


def test_folders_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", str(tmp_path / "a" / "root"))
    DiskCache.named("ir").put("key", b"x")
    assert {(tmp_path / "a" / folder).stat().st_mode & 0o777 for folder in ("root", "root/ir")} == {0o700}
    (tmp_path / "a" / "root" / "ir").chmod(0o775)  # an older version may have made it so
    assert DiskCache.named("ir").get("key") == b"x"
    assert (tmp_path / "a" / "root" / "ir").stat().st_mode & 0o777 == 0o700


def test_folders_that_others_decide_about_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", str(tmp_path))
    mine = os.geteuid()
    monkeypatch.setattr("jax_enzyme.cache.os.geteuid", lambda: mine + 1)
    with pytest.warns(UserWarning, match="another user"):
        DiskCache.named("ir").put("key", b"x")
    with pytest.warns(UserWarning, match="another user"):
        DiskCache(tmp_path).put("key", b"x")
    monkeypatch.undo()
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.warns(UserWarning, match="by everybody"):
        DiskCache.named("ir").put("key", b"x")
    tmp_path.chmod(0o755)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "ir").symlink_to(tmp_path / "elsewhere")
    with pytest.warns(UserWarning, match="a link"):
        DiskCache.named("ir").put("key", b"x")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["elsewhere", "ir"]
