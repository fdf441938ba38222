"""Whether ONNX Runtime would take the graph of an ONNX file, as ONNX's own definitions of operators show.

The distribution `onnx` judges in a process of its own, because it is native code and importing it takes a while. The
process gets the skeleton of a file, without its weights. It has limits of time and memory. A verdict is kept for each
content, so one content is judged once.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import struct
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdk_triton._file_cache import SMALL_BYTES, FileCache, fingerprint, is_settled
from cdk_triton.onnx_models.reader.protobuf_wire import WireError
from cdk_triton.onnx_models.reader.skeleton import onnx_skeleton

if TYPE_CHECKING:
    import subprocess

__all__ = ["GraphFault", "GraphVerdict", "Limits", "onnx_graphs"]

_PROGRAM = Path(__file__).with_name("_graph_program.py")
_FILES, _CONTENTS = "onnx graph of a file", "onnx graph"
_LARGEST_SKELETON = 64 * 2**20


@dataclass(frozen=True)
class Limits:
    """The limits of the process for one graph; a graph that needs more is not judged.

    Attributes:
        seconds: of processor time; BERT takes 0.1 s.
        wall_seconds: by the clock, for a process that waits instead of computing.
        memory_bytes: of address space.
    """

    seconds: float = 30
    wall_seconds: float = 120
    memory_bytes: int = 4 * 2**30


_LIMITS: Final = Limits()


@dataclass(frozen=True)
class GraphFault:
    """A fault for which ONNX Runtime rejects a graph.

    Attributes:
        kind: the kind of fault. `operator`: ONNX does not have the operator. `newer`: only a newer opset has it.
            `deprecated`: ONNX has removed it. `foreign`: ONNX does not define it. `node`: its attributes, or the number
            of its inputs and outputs. `shape` and `type`: those of its operands. `attribute`: one does not fit the
            shapes of the operands. `value` and `cycle`: which nodes write the values. `name`: the names of nodes.
        operator: the operator, or "".
        node: the node's name, or "".
        output: the node's first output, or "".
        domain: the operator's domain; "" for ONNX's own.
        reason: approximately the message of ONNX Runtime.
        fix: the name that was probably meant, or ""; for the kind `newer`, the first opset that has the operator, `20`.
    """

    kind: str
    operator: str
    node: str
    output: str
    domain: str
    reason: str
    fix: str

    @property
    def subject(self) -> str:
        """The operator and the place of its node, or `the graph`, in the words of a message."""
        if not self.operator:
            return "the graph"
        name = f"{self.domain}.{self.operator}" if self.domain else self.operator
        place = f" (node {self.node!r})" if self.node else f" (output {self.output!r})" if self.output else ""
        return f"the operator {name!r}{place}"


@dataclass(frozen=True)
class GraphVerdict:
    """The result of a check of a graph.

    Attributes:
        unjudged: why the graph could not be checked, or "".
        faults: why ONNX Runtime would reject it.
        foreign: the operators that neither ONNX nor a function of the file defines, once each. The reason is the
            message of an ONNX Runtime that does not define them either.
    """

    unjudged: str = ""
    faults: tuple[GraphFault, ...] = ()
    foreign: tuple[GraphFault, ...] = ()

    @property
    def is_too_new(self) -> bool:
        """Whether the opset is newer than the installed `onnx`."""
        return self.unjudged.startswith("the installed onnx does not support the opset")


def onnx_graphs(files: Iterable[Path], limits: Limits = _LIMITS) -> Mapping[Path, GraphVerdict]:
    """The verdict on each ONNX file; a file that cannot be read has none."""
    verdicts: dict[Path, GraphVerdict] = {}
    with FileCache() as kept:
        for file in dict.fromkeys(files):
            try:
                verdicts[file] = _of_file(file, kept, limits)
            except (OSError, ValueError, WireError):
                continue
    return verdicts


def _of_file(file: Path, kept: FileCache, limits: Limits) -> GraphVerdict:
    read_ns, state = time.time_ns(), file.stat()
    if state.st_size <= SMALL_BYTES:
        return _of_content(onnx_skeleton(file), kept, limits)[0]
    # Repositories may share a file by hard links, so its name does not matter.
    name, mark = b"%d %d" % (state.st_dev, state.st_ino), f"{fingerprint(state)} {_judge()}"
    known = kept.recall(_FILES, name, mark)
    verdict = None if known is None else _read(known)
    if verdict is None:
        verdict, lasts = _of_content(onnx_skeleton(file), kept, limits)
        if lasts and is_settled(state, read_ns):
            kept.keep(_FILES, name, mark, _written(verdict))
    return verdict


_judged: dict[bytes, GraphVerdict] = {}  # in this process; an app has many repositories


def _of_content(skeleton: bytes, kept: FileCache, limits: Limits) -> tuple[GraphVerdict, bool]:
    """The verdict, and whether a second run would have the same."""
    if len(skeleton) > _LARGEST_SKELETON:
        return GraphVerdict(f"the graph alone has {len(skeleton) / 2**20:.0f} MiB"), True
    name = hashlib.sha256(skeleton).digest()
    known = kept.recall(_CONTENTS, name, _judge()) if name not in _judged else None
    verdict = _judged.get(name) or (None if known is None else _read(known))
    if verdict is not None:
        _judged[name] = verdict
        return verdict, True
    verdict, lasts = _Process.running(limits).judge(skeleton)
    if lasts:
        _judged[name] = verdict
        kept.keep(_CONTENTS, name, _judge(), _written(verdict))
    return verdict, lasts


def _written(verdict: GraphVerdict) -> str:
    return json.dumps(asdict(verdict))


def _read(text: str) -> GraphVerdict | None:
    """The verdict in a text; None if the text is not a verdict."""
    try:
        answer: Any = json.loads(text)
        faults, foreign = (tuple(GraphFault(**each) for each in answer.get(key, ())) for key in ("faults", "foreign"))
        return GraphVerdict(answer["unjudged"], faults, foreign)
    except (KeyError, TypeError, ValueError):
        return None


@cache
def _judge() -> str:
    """The version and the program that a verdict depends on."""
    try:
        installed = version("onnx")
    except PackageNotFoundError:
        installed = ""
    return f"{installed} {hashlib.sha256(_PROGRAM.read_bytes()).hexdigest()}"


class _Process:
    """The process that judges: it starts with the first graph, ends with this one, and is replaced if it dies."""

    _running: _Process | None = None

    @classmethod
    def running(cls, limits: Limits) -> _Process:
        """The process with these limits, started if need be."""
        if cls._running is not None and (cls._running._limits != limits or cls._running._child.poll() is not None):
            cls._running.end()
        if cls._running is None:
            cls._running = cls(limits)
        return cls._running

    def __init__(self, limits: Limits) -> None:
        import subprocess  # here, because a check that needs no process does not wait for its import

        self._limits = limits
        self._owner = os.getpid()
        self._has_answered = False
        self._child: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM), str(limits.seconds), str(limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(self.end)

    def judge(self, skeleton: bytes) -> tuple[GraphVerdict, bool]:
        """The verdict on a graph, and whether it would be the same again."""
        try:
            line = self._answer(skeleton)
        except TimeoutError:
            self.end()
            return GraphVerdict(f"its check gave no answer within {self._limits.wall_seconds:g} s"), False
        except OSError:
            line = b""
        verdict = _read(line.decode(errors="replace")) if line else None
        if verdict is not None:
            self._has_answered = True
            return verdict, not verdict.unjudged.startswith("onnx cannot be imported")
        found = self._ending()
        if self._has_answered and not found[1]:  # it may have died before this graph
            return _Process.running(self._limits).judge(skeleton)
        return found

    def _answer(self, skeleton: bytes) -> bytes:
        """The line with the answer; "" if the process ended instead."""
        import selectors

        stdin, stdout = self._child.stdin, self._child.stdout
        if stdin is None or stdout is None:
            return b""
        stdin.write(struct.pack(">Q", len(skeleton)) + skeleton)
        stdin.flush()
        line, deadline = b"", time.monotonic() + self._limits.wall_seconds
        with selectors.DefaultSelector() as ready:
            ready.register(stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not ready.select(deadline - time.monotonic()):
                    raise TimeoutError
                part = os.read(stdout.fileno(), 65536)
                if not part:
                    return b""
                line += part
        return line

    def _ending(self) -> tuple[GraphVerdict, bool]:
        import signal

        status = self._child.wait()
        self.end()
        if status == -signal.SIGPROF:
            return GraphVerdict(f"its check needs more than {self._limits.seconds:g} s of processor time"), True
        how = f"ended with status {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"
        return GraphVerdict(f"its check {how}"), False

    def end(self) -> None:
        """End the process, if this is the one that started it."""
        if _Process._running is self:
            _Process._running = None
        atexit.unregister(self.end)
        if os.getpid() != self._owner:
            return  # a fork of this process ends
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
