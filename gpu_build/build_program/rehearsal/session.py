"""What happens with a server: it loads, answers, and answers several requests at once.

Models of a multi-model endpoint are then unloaded, and loaded again.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from ..load_failures import failed_request
from ..log import Log
from ..stop import Stop, StoppedError
from .comparison import difference, figures_of, lacking
from .document import RehearsalDocument, RequestEntry
from .memory import Memory, sampled_memory, shared_mib
from .privacy import said_without_text
from .repetition import Latencies, repeat
from .server import Answer, RehearsalError, Server, serving
from .tensors import AnswerError, Tensor, read_tensors, requested_outputs

__all__ = ["Session"]

_REPEATED_SECONDS = 5.0
_REPEATED_SECONDS_OF_STAND_INS = 0.5  # enough to see that several requests at once are answered
_MESSAGE_CHARACTERS = 400
_CONTAINER_MIB = 64.0  # Docker's default, for which SageMaker has no setting
_DECOUPLED = "decoupled transaction policy"  # server: sagemaker_server.cc. auto_complete_config may have set it
# python_backend: src/shm_manager.cc. It advises an option of `docker run`, which a container of SageMaker cannot have.
_NO_SHARED_MEMORY = re.compile(
    r"(?:Unable to initialize|Failed to increase the) shared memory .*?Error: No space left on device", re.DOTALL
)


class Session:
    """A rehearsal of one repository.

    Args:
        document: what to rehearse.
        out: gets the answers that are kept.
        log: gets events.
        stop: ends the rehearsal.

    Attributes:
        result: the figures so far; see `run.rehearse`.
    """

    def __init__(self, document: RehearsalDocument, out: Path, log: Log, stop: Stop) -> None:
        self._document = document
        self._out = out
        self._log = log
        self._stop = stop
        self.result: dict[str, Any] = {
            "load_seconds": None,
            "requests": [],
            "memory": None,
            "latency": None,
            "skipped": [],
            "differs": {},
        }

    def run(self, server: Server, repository: Path) -> str | None:
        """Rehearse, and return the sentence of the first failure; None if everything passes."""
        try:
            with sampled_memory() as memory:
                try:
                    with serving(server, repository, memory.others):
                        self._use(server, memory)
                    memory.mark("after")
                finally:
                    self.result["memory"] = memory.figures()
                    self.result["differs"] = _differences(server, memory)
        except (RehearsalError, StoppedError) as error:
            return _for_container(error.reason, server)
        return None

    def _use(self, server: Server, memory: Memory) -> None:
        self.result["load_seconds"] = round(server.load_seconds, 3)
        memory.mark("loaded")
        failed = []
        for number, request in enumerate(self._document.requests):
            row = self._asked(server, number, request)
            self.result["requests"].append(row)
            if row["reason"] is not None:
                failed.append(f"{row['name']}: {row['reason']}")
        if failed:
            raise RehearsalError(failed[0])
        if self._document.requests:
            self.result["latency"] = self._repeated(server).figures()
        if self._document.mode == "multi":
            self._loaded_again(server, memory)
        self._check_budgets(server, memory)

    def _asked(self, server: Server, number: int, request: RequestEntry) -> dict[str, Any]:
        row: dict[str, Any] = {"name": request.name, "reason": None, "seconds": None, "largest_differences": {}}
        try:
            with _named(request.name):
                body = request.body.read_bytes()
                answer = _answered(server, body, request.content_type, private=request.private)
            row["seconds"] = round(answer.seconds, 6)
            if self._document.keep_answers:
                (self._out / f"answer{number}").write_bytes(answer.body)
                row["content_type"] = answer.content_type
            row.update(_compared(request, requested_outputs(body, request.content_type), answer))
        except AnswerError as error:
            row["reason"] = _for_container(str(error), server)
        return row

    def _repeated(self, server: Server) -> Latencies:
        def ask(body: bytes, content_type: str, name: str) -> float:
            with _named(name):
                try:
                    return _answered(server, body, content_type, watched=False).seconds
                except AnswerError as error:
                    raise RehearsalError(f"{error}, when {concurrency} are sent at once") from error

        concurrency = self._document.budgets.concurrency
        seconds = _REPEATED_SECONDS_OF_STAND_INS if server.stand_ins else _REPEATED_SECONDS
        return repeat(self._document.requests, ask, concurrency, seconds, self._stop)

    def _loaded_again(self, server: Server, memory: Memory) -> None:
        server.unload()
        memory.mark("unloaded")
        with _named("after it was unloaded"):
            self.result["second_load_seconds"] = round(server.load(), 3)
        for number, request in enumerate(self._document.requests[:1]):
            row = self._asked(server, number, request)
            if row["reason"] is not None:
                raise RehearsalError(f"{row['name']}, after the models were loaded again: {row['reason']}")

    def _check_budgets(self, server: Server, memory: Memory) -> None:
        budgets = self._document.budgets
        if budgets.load_seconds is not None and server.load_seconds > budgets.load_seconds:
            raise RehearsalError(
                f"the models took {server.load_seconds:.1f} s to load, but the limit is {budgets.load_seconds:g} s: "
                "make them load faster, or raise max_load_seconds"
            )
        if budgets.gpu_memory_mib is not None and self._is_measured("gpu_memory_mib", server, memory.has_gpu):
            peak = memory.gpu_peak or 0.0
            if peak > budgets.gpu_memory_mib:
                raise RehearsalError(
                    f"{peak:,.0f} MiB of the GPU's memory were in use, but the limit is {budgets.gpu_memory_mib:,g} "
                    "MiB: use fewer instances or smaller batches, or raise max_gpu_memory_mib"
                )
        latency = self.result["latency"]
        if budgets.p99_milliseconds is not None and self._is_measured("p99_milliseconds", server, latency is not None):
            found = latency["p99_milliseconds"]
            if found > budgets.p99_milliseconds:
                raise RehearsalError(
                    f"the p99 latency of {latency['answers']} answers was {found:g} ms when "
                    f"{budgets.concurrency} are sent at once, but the limit is {budgets.p99_milliseconds:g} ms: make "
                    "the models faster, or raise max_p99_milliseconds"
                )

    def _is_measured(self, budget: str, server: Server, is_known: bool) -> bool:
        if server.stand_ins:
            self.result["skipped"].append(f"{budget}: {', '.join(server.stand_ins)} ran as a stand-in on this machine")
        elif not is_known:
            self.result["skipped"].append(f"{budget}: there are no figures of it")
        return is_known and not server.stand_ins


def _differences(server: Server, memory: Memory) -> dict[str, str]:
    """What is different from the endpoint, by its name."""
    found = {
        "role": "the server has no variables with credentials, but the job's host and its metadata can be reached",
        "instance": f"the machine of the job, with {memory.gpus} GPUs; the endpoint's instance type may have more",
        "network": "the network of the job, not the endpoint's VPC or network isolation",
        "driver": f"{memory.driver or 'none'}, that of the job's host",
    }
    if server.account is not None:
        found["user"] = f"{server.account.name} instead of root"
    return found


def _for_container(reason: str, server: Server) -> str:
    """A reason with the fix for shared memory that a container of SageMaker can have."""
    size = shared_mib(total=True)
    if server.stand_ins:  # the local AWS gives Python models what a container has
        size = min(size, _CONTAINER_MIB)
    fix = "lower shm_default_byte_size of the ContainerEnvironment, or the number of their instances"
    return _NO_SHARED_MEMORY.sub(f"Python models need more than the {size:,.0f} MiB of /dev/shm: {fix}", reason)


def _answered(server: Server, body: bytes, content_type: str, *, watched: bool = True, private: bool = True) -> Answer:
    answer = server.invoke(body, content_type, watched=watched)
    if answer.status == 501 and _DECOUPLED in answer.error:
        raise AnswerError(
            "the model is decoupled, so it may have any number of answers, and an endpoint returns none: remove the "
            "golden requests, or let the model return one response for each request without `decoupled`"
        )
    if answer.status != 200:
        said = failed_request(answer.error, server.place)
        if private:
            said = said_without_text(said, body, content_type, server.place)
        raise AnswerError(f"the server answered with status {answer.status}: {_shortened(said)}")
    return answer


def _shortened(message: str) -> str:
    """The beginning and the end of a message: the exception is at the beginning, its place in the code at the end."""
    half = _MESSAGE_CHARACTERS // 2
    is_short = len(message) <= _MESSAGE_CHARACTERS
    return message if is_short else f"{message[:half].rstrip()} ... {message[-half:].lstrip()}"


def _compared(request: RequestEntry, asked: Sequence[str], answer: Answer) -> Mapping[str, Any]:
    found = read_tensors(answer.body, answer.content_type)
    for name in asked:
        if name not in found:  # the server says nothing of it
            return {"reason": f"{lacking(name, found)}: the model has returned no tensor of this name"}
    expected: dict[str, Tensor] | None = None
    if request.expected is not None:
        try:
            expected = read_tensors(request.expected.read_bytes(), request.expected_type)
        except AnswerError as error:
            raise AnswerError(f"the expected answer cannot be used: {error}") from error
    reason = difference(request.comparison, found, expected)
    if reason is not None or expected is None:
        return {"reason": reason}
    return {"largest_differences": figures_of(found, expected)}


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """A failure of the server says what was asked of it."""
    try:
        yield
    except RehearsalError as error:
        raise RehearsalError(f"{what}: {error.reason}") from error
