"""Reads the logs of a state directory.

Nothing removes logs. So each run of the local AWS first writes down how long they are, which is where its lines begin.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from cdk_triton.errors import LocalError

__all__ = ["LogFiles", "LogSelection"]

_OWN_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ")
_TRITON_TIME: Final = re.compile(r"[IWEF](\d{4} \d\d:\d\d:\d\d)\.\d+ ")
"""How tritonserver begins a line: severity, month, day and time in UTC, without a year."""

_HARMLESS: Final = (
    (
        re.compile(r"^[EW]\d{4} .*(CUDA driver version is insufficient|CudaDriverHelper has not been initialized)"),
        "expected: the local AWS uses no GPU",
    ),
    (re.compile(r"Started Sagemaker HTTPService at 0\.0\.0\.0:"), "kept on 127.0.0.1 by the local AWS"),
)
"""Lines of tritonserver that alarm readers without a reason, and why they need not."""

_TABLE: Final = re.compile(r"\+-|\| ")
"""The rows of tritonserver's tables (src/table_printer.cc of triton-inference-server/common) begin so."""


@dataclass(frozen=True)
class LogSelection:
    """A selection of log lines.

    Attributes:
        endpoint: only the servers of this endpoint.
        source: only sources whose names begin with this text.
        since: only lines from this time on, in seconds since 1970. A line without a time has that of the line before.
        earlier_runs: whether to include what earlier runs of the local AWS wrote.
        brief: whether to omit the tables that tritonserver prints, and its errors that are expected here.
    """

    endpoint: str | None = None
    source: str = ""
    since: float | None = None
    earlier_runs: bool = False
    brief: bool = False

    def wants(self, source: str) -> bool:
        """Whether lines of this source are wanted."""
        return source.startswith(self.source) and (self.endpoint is None or source.startswith(f"{self.endpoint}/"))


class LogFiles:
    """The logs of one state directory.

    Args:
        directory: the state directory.
        log_file: the log of the local AWS itself.
    """

    def __init__(self, directory: Path, log_file: Path) -> None:
        self._directory = directory
        self._log_file = log_file
        self._run_file = directory / "run.json"

    def begin_run(self, *, on_all_interfaces: bool) -> None:
        """Record that the present content of the logs is of earlier runs."""
        sizes = {str(path.relative_to(self._directory)): path.stat().st_size for path in self.paths() if path.exists()}
        self._run_file.unlink(missing_ok=True)
        self._run_file.write_text(json.dumps({"sizes": sizes, "all": on_all_interfaces}), encoding="utf-8")

    def paths(self) -> tuple[Path, ...]:
        """The log file, and those of functions, jobs and endpoints."""
        others = sorted(self._directory.glob("logs/*.log")) + sorted(self._directory.glob("endpoints/logs/*/*.log"))
        return (self._log_file, *others)

    def require(self, selection: LogSelection) -> None:
        """Check that the selection has a log.

        Raises:
            LocalError: no source has such a name.
        """
        sources = [self._source(path) for path in self.paths()]
        if not any(selection.wants(source) for source in sources):
            what = f"endpoint {selection.endpoint!r}" if selection.endpoint is not None else f"{selection.source!r}"
            raise LocalError(f"there is no log of {what} in {self._directory}; there are logs of: {', '.join(sources)}")

    def new_lines(self, opened: dict[Path, _Reader], selection: LogSelection, *, whole: bool) -> Iterator[str]:
        """The wanted lines that were written since the last call with the same readers, each after its source.

        Args:
            opened: the readers so far, empty at the first call; the caller closes them.
            selection: which lines.
            whole: whether to leave an unfinished last line for the next call.
        """
        for path in self.paths():
            source = self._source(path)
            if selection.wants(source):
                if path not in opened:
                    opened[path] = self._reader(path, selection)
                yield from (f"{source} | {line}" for line in opened[path].lines(whole=whole))

    def _reader(self, path: Path, selection: LogSelection) -> _Reader:
        run = self._run()
        file = path.open("rb")
        offset = run["sizes"].get(str(path.relative_to(self._directory)), 0)
        if not selection.earlier_runs and offset <= path.stat().st_size:  # else it is another file
            file.seek(offset)
        from_server = path.is_relative_to(self._directory / "endpoints")
        notes = _HARMLESS[: 1 if run["all"] else 2] if from_server else ()
        return _Reader(file, selection.since, notes, brief=selection.brief and from_server)

    def _run(self) -> dict[str, dict[str, int]]:
        with contextlib.suppress(OSError, ValueError):
            run = json.loads(self._run_file.read_text(encoding="utf-8"))
            if isinstance(run, dict) and run.keys() == {"sizes", "all"}:
                return run
        return {"sizes": {}, "all": {}}

    def _source(self, log_file: Path) -> str:
        endpoint = log_file.is_relative_to(self._directory / "endpoints")
        return f"{log_file.parent.name}/{log_file.stem}" if endpoint else log_file.stem


class _Reader:
    def __init__(
        self, file: IO[bytes], since: float | None, notes: tuple[tuple[re.Pattern[str], str], ...], *, brief: bool
    ) -> None:
        self._file = file
        self._brief = brief
        self._since = since
        self._notes = notes
        changed = os.fstat(file.fileno()).st_mtime
        self._is_due = since is None or changed >= since  # of lines before the first time

    def lines(self, *, whole: bool) -> Iterator[str]:
        """The wanted lines from here to the end of the file."""
        while line := self._file.readline():
            if whole and not line.endswith(b"\n"):
                self._file.seek(-len(line), os.SEEK_CUR)
                return
            text = line.decode(errors="replace").rstrip("\n")
            if self._since is not None and (time := _time(text)) is not None:
                self._is_due = time >= self._since
            notes = [note for pattern, note in self._notes if pattern.search(text)]
            if self._is_due and not (self._brief and (notes or _TABLE.match(text))):
                yield f"{text}  ({notes[0]})" if notes else text

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _time(line: str) -> float | None:
    """In seconds since 1970; None if the line has no time."""
    if found := _OWN_TIME.match(line):
        with contextlib.suppress(ValueError):
            return datetime.datetime.fromisoformat(found[1]).astimezone().timestamp()
    if found := _TRITON_TIME.match(line):
        now = datetime.datetime.now(datetime.UTC)
        for year in (now.year, now.year - 1):
            with contextlib.suppress(ValueError):
                time = datetime.datetime.strptime(f"{year}{found[1]}+0000", "%Y%m%d %H:%M:%S%z")
                if time <= now + datetime.timedelta(days=1):
                    return time.timestamp()
    return None
