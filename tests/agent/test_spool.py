"""Batches that wait on disk: in order, under one name, bounded, counted."""

import os
import time

import pytest

from fleet.agent import spool as spool_module
from fleet.agent.spool import Spool

BOOT = "6f1c0c0e-8a5d-4a44-9f3a-0f5f4f3d2c1b"
DAY = 86_400.0


@pytest.fixture
def open_spool(tmp_path):
    def make(max_bytes=1_000_000, max_age_seconds=DAY):
        return Spool(tmp_path / "spool", max_bytes=max_bytes, max_age_seconds=max_age_seconds)

    make.folder = tmp_path / "spool"
    return make


def drain(spool):
    """Take everything out; returns (boot id, seq, body) in the order of sending."""
    taken = []
    while (waiting := spool.oldest()) is not None:
        entry, body = waiting
        taken.append((entry.boot_id, entry.seq, body))
        spool.done(entry)
    return taken


def test_batches_come_out_in_the_order_in_which_they_went_in(open_spool):
    spool = open_spool()
    for seq in range(1, 12):
        spool.append(BOOT, seq, 8, b"batch %d" % seq)
    assert drain(spool) == [(BOOT, seq, b"batch %d" % seq) for seq in range(1, 12)]
    assert len(spool) == 0
    assert spool.lost_samples == 0


def test_a_batch_stays_until_it_is_done(open_spool):
    spool = open_spool()
    spool.append(BOOT, 1, 8, b"one")
    assert spool.oldest()[1] == spool.oldest()[1] == b"one"


def test_what_an_earlier_run_left_is_sent_first_under_its_own_name(open_spool):
    earlier = open_spool()
    earlier.append("earlier", 41, 8, b"left 41")
    earlier.append("earlier", 42, 8, b"left 42")
    later = open_spool()
    later.append(BOOT, 1, 8, b"new 1")
    assert drain(later) == [("earlier", 41, b"left 41"), ("earlier", 42, b"left 42"), (BOOT, 1, b"new 1")]


def test_order_survives_a_clock_that_was_set_back(open_spool):
    earlier = open_spool()
    earlier.append("earlier", 1, 8, b"first")
    path = next(open_spool.folder.glob("*.batch"))
    os.utime(path, (time.time() + 3600, time.time() + 3600))
    later = open_spool()
    later.append(BOOT, 1, 8, b"second")
    assert [body for _, _, body in drain(open_spool())] == [b"first", b"second"]


def test_a_file_that_was_being_written_when_the_agent_died_is_no_batch(open_spool):
    open_spool().append(BOOT, 1, 8, b"whole")
    (open_spool.folder / f"000000000002-{BOOT}-2-8.batch.new").write_bytes(b"ha")
    spool = open_spool()
    assert drain(spool) == [(BOOT, 1, b"whole")]
    assert not list(open_spool.folder.glob("*.new"))


def test_a_full_spool_drops_the_oldest_and_counts_it(open_spool):
    spool = open_spool(max_bytes=30)
    for seq in range(1, 6):
        spool.append(BOOT, seq, 8, b"0123456789")
    assert [seq for _, seq, _ in drain(spool)] == [3, 4, 5]
    assert spool.lost_samples == 16


def test_a_batch_that_is_too_old_is_dropped_and_counted(open_spool):
    spool = open_spool(max_age_seconds=DAY)
    spool.append(BOOT, 1, 8, b"old")
    spool._entries[0].born -= DAY + 1
    spool.append(BOOT, 2, 8, b"new")
    assert [body for _, _, body in drain(spool)] == [b"new"]
    assert spool.lost_samples == 8


def test_age_of_what_an_earlier_run_left_goes_on(open_spool):
    open_spool().append(BOOT, 1, 8, b"old")
    path = next(open_spool.folder.glob("*.batch"))
    os.utime(path, (time.time() - 2 * DAY, time.time() - 2 * DAY))
    spool = open_spool(max_age_seconds=DAY)
    spool.append(BOOT, 2, 8, b"new")
    assert spool.lost_samples == 8


def test_files_dated_by_a_clock_that_was_wrong_are_not_thrown_away_for_it(open_spool):
    open_spool().append(BOOT, 1, 8, b"from 1970")
    os.utime(next(open_spool.folder.glob("*.batch")), (0, 0))
    spool = open_spool(max_age_seconds=DAY)
    spool.append(BOOT, 2, 8, b"new")
    assert spool.lost_samples == 0


def test_counts_survive_the_agent(open_spool):
    spool = open_spool(max_bytes=10)
    spool.append(BOOT, 1, 8, b"0123456789")
    spool.append(BOOT, 2, 8, b"0123456789")
    spool.refuse(spool.oldest()[0])
    again = open_spool()
    assert again.lost_samples == 16
    assert again.refused_batches == 1


def test_a_refused_batch_is_moved_aside_and_the_next_is_sent(open_spool):
    spool = open_spool()
    spool.append(BOOT, 1, 8, b"bad")
    spool.append(BOOT, 2, 8, b"good")
    spool.refuse(spool.oldest()[0])
    assert spool.oldest()[1] == b"good"
    assert [path.read_bytes() for path in (open_spool.folder / "refused").iterdir()] == [b"bad"]
    assert drain(open_spool()) == [(BOOT, 2, b"good")]


def test_only_the_newest_refused_batches_are_kept(open_spool):
    spool = open_spool()
    for seq in range(1, spool_module.KEPT_REFUSED + 6):
        spool.append(BOOT, seq, 8, b"bad")
        spool.refuse(spool.oldest()[0])
    kept = sorted(int(path.name.split("-")[-2]) for path in (open_spool.folder / "refused").iterdir())
    assert kept == list(range(6, spool_module.KEPT_REFUSED + 6))


def test_a_batch_that_cannot_be_read_is_counted_and_holds_nothing_up(open_spool):
    spool = open_spool()
    spool.append(BOOT, 1, 8, b"damaged")
    spool.append(BOOT, 2, 8, b"good")
    min(open_spool.folder.glob("*.batch")).write_bytes(b"")
    assert spool.oldest()[1] == b"good"
    assert spool.lost_samples == 8


def test_a_disk_that_refuses_leaves_batches_in_memory(open_spool, monkeypatch, caplog):
    spool = open_spool()

    def refuse(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    spool.append(BOOT, 1, 8, b"one")
    spool.append(BOOT, 2, 8, b"two")
    monkeypatch.undo()
    spool.append(BOOT, 3, 8, b"three")
    assert caplog.text.count("No space left") == 1
    assert [body for _, _, body in drain(spool)] == [b"one", b"two", b"three"]


def test_what_waits_in_memory_is_bounded_too(open_spool, monkeypatch):
    monkeypatch.setattr(spool_module, "MEMORY_BYTES", 25)
    spool = open_spool()
    monkeypatch.setattr("pathlib.Path.write_bytes", lambda self, data: (_ for _ in ()).throw(OSError(28, "full")))
    for seq in range(1, 5):
        spool.append(BOOT, seq, 8, b"0123456789")
    assert [seq for _, seq, _ in drain(spool)] == [3, 4]
    assert spool.lost_samples == 16


def test_a_batch_that_was_dropped_while_it_was_sent_may_still_be_done(open_spool):
    spool = open_spool(max_bytes=10)
    spool.append(BOOT, 1, 8, b"0123456789")
    entry, _ = spool.oldest()
    spool.append(BOOT, 2, 8, b"9876543210")
    spool.done(entry)
    assert [seq for _, seq, _ in drain(spool)] == [2]


def test_other_files_in_the_folder_are_left_alone(open_spool):
    open_spool()
    (open_spool.folder / "notes.batch").write_text("mine")
    assert len(open_spool()) == 0
    assert (open_spool.folder / "notes.batch").exists()
