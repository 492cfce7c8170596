"""What this agent knows of its jobs, on disk: which one it began, and the outcomes that the panel has not heard yet."""

import os
from pathlib import Path

import msgspec

from fleet.agent import wire


class Entry(msgspec.Struct):
    """One job. report: its outcome, None while it goes on."""

    job_id: int
    run_id: str
    report: wire.JobReport | None = None


class Journal:
    """One file for each job in a directory. A disk that refuses costs the memory of a restart, not the job."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[int, Entry] = {}

    def load(self) -> None:
        """Read what the run before left behind; what it had begun and not ended was interrupted with it."""
        for file in sorted(self._path.glob("*.json")):
            try:
                entry = msgspec.json.decode(file.read_bytes(), type=Entry)
            except (OSError, msgspec.MsgspecError):
                file.unlink(missing_ok=True)
                continue
            if entry.report is None:
                entry.report = wire.JobReport(entry.run_id, "failed", reason="interrupted")
            self._entries[entry.job_id] = entry

    def __contains__(self, job_id: int) -> bool:
        return job_id in self._entries

    def begin(self, job_id: int, run_id: str) -> None:
        """Note that a job is about to be begun."""
        self._keep(Entry(job_id, run_id))

    def end(self, job_id: int, report: wire.JobReport) -> None:
        """Keep a job's outcome until the panel has it."""
        self._keep(Entry(job_id, report.run_id, report))

    def forget(self, job_id: int) -> None:
        """Keep nothing of a job any more."""
        self._entries.pop(job_id, None)
        self._file(job_id).unlink(missing_ok=True)

    def waiting(self) -> list[tuple[int, wire.JobReport]]:
        """Return the outcomes that the panel does not have, the oldest job first."""
        return [(entry.job_id, entry.report) for _, entry in sorted(self._entries.items()) if entry.report is not None]

    def _file(self, job_id: int) -> Path:
        return self._path / f"{job_id}.json"

    def _keep(self, entry: Entry) -> None:
        self._entries[entry.job_id] = entry
        file = self._file(entry.job_id)
        aside = file.with_suffix(".new")
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with aside.open("wb") as out:
                out.write(msgspec.json.encode(entry))
                out.flush()
                os.fsync(out.fileno())
            aside.replace(file)
        except OSError:
            aside.unlink(missing_ok=True)
