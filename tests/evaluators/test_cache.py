"""Compilers' results on disk: bounded, private, and never half written."""

from __future__ import annotations

from pathlib import Path

from evaluators.cache import Cache, private_folder, write_whole
from evo.records import Binary, Resources, Status


def test_what_is_put_is_got_but_for_the_time_it_took(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit_bytes=10_000)
    made = Binary(Status.OK, "key", b"a\nb", resources={"k": Resources(8)}, seconds=2.0, lowered={"k": "_Z1kv"})
    cache.put(made)
    assert cache.get("key") == Binary(Status.OK, "key", b"a\nb", resources={"k": Resources(8)}, lowered={"k": "_Z1kv"})
    assert cache.get("another") is None


def test_the_cache_stays_within_its_limit_and_keeps_what_was_used_last(tmp_path: Path) -> None:
    cache = Cache(private_folder(tmp_path / "cache"), limit_bytes=10_000)
    for number in range(20):
        cache.put(Binary(Status.OK, f"key{number}", image=bytes(1000)))
    assert sum(path.stat().st_size for path in cache.folder.iterdir()) <= 10_000
    assert cache.get("key19") is not None
    assert cache.get("key0") is None


def test_a_damaged_entry_of_the_cache_is_no_hit(tmp_path: Path) -> None:
    cache = Cache(private_folder(tmp_path / "cache"), limit_bytes=10_000)
    (cache.folder / "key").write_bytes(b"{broken")
    assert cache.get("key") is None
    (cache.folder / "key").write_bytes(b"{broken\nimage")
    assert cache.get("key") is None


def test_the_cache_folder_is_private(tmp_path: Path) -> None:
    assert private_folder(tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_written_costs_the_entry_and_nothing_else(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "gone", limit_bytes=10_000)
    cache.put(Binary(Status.OK, "key"))
    assert cache.get("key") is None


def test_a_file_that_cannot_take_its_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken" / "by a folder").mkdir(parents=True)
    Cache(tmp_path, limit_bytes=10_000).put(Binary(Status.OK, "taken"))
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    write_whole(tmp_path / "free", b"whole")
    assert (tmp_path / "free").read_bytes() == b"whole"
