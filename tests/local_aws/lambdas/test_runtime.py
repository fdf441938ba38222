"""The processes of functions: what several of one function print, and what becomes of one that starts too late."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local.lambdas import FunctionCode, LambdaRuntime
from cdk_triton_local.lambdas import runtime as lambda_runtime
from cdk_triton_local.process import Child, start

if TYPE_CHECKING:
    from golden_messages import Messages

Make = Callable[[str], LambdaRuntime]


@pytest.fixture
def published() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def make(tmp_path: Path, published: list[tuple[str, str]]) -> Iterator[Make]:
    """Makes a runtime whose only function, `f`, has the given code."""
    made = []

    def runtime(code: str) -> LambdaRuntime:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("index.py", code)
        function = FunctionCode("f", "arn:f", "role", "python3.13", "index.handler", 30.0, {}, buffer.getvalue())
        new = LambdaRuntime(tmp_path, lambda role: {}, {"f": function}.get, lambda *told: published.append(told))
        made.append(new)
        return new

    yield runtime
    for each in made:
        each.close()


MEETING = """
import pathlib, time
def handler(event, context):
    place = pathlib.Path("..") / "met"
    place.mkdir(exist_ok=True)
    (place / event).touch()
    while len(list(place.iterdir())) < 2:
        time.sleep(0.01)
    for number in range(100, 600):
        print("told by", event, number)
"""


def test_what_two_processes_of_a_function_print_is_published_once(make: Make, published: list[tuple[str, str]]) -> None:
    """Both print at the same time, and each finds the other's lines in the log too, whole ones."""
    runtime = make(MEETING)
    threads = [threading.Thread(target=runtime.invoke, args=("f", name)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {group for group, _ in published} == {"/aws/lambda/f"}
    assert sorted("".join(text for _, text in published).splitlines()) == [
        f"told by {event} {number}" for event in "ab" for number in range(100, 600)
    ]


def test_what_an_earlier_runtime_logged_is_not_published_again(make: Make, published: list[tuple[str, str]]) -> None:
    for event in "ab":
        runtime = make("def handler(event, context):\n    print(event)\n")
        runtime.invoke("f", event)
        runtime.close()
    assert published == [("/aws/lambda/f", "a\n"), ("/aws/lambda/f", "b\n")]


def test_a_process_that_starts_while_everything_is_stopped_is_ended(
    messages: Messages, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = make("def handler(event, context):\n    return 1\n")
    started = []

    def close_meanwhile(*arguments: object, **options: object) -> Child:
        child = start(*arguments, **options)  # type: ignore[arg-type]  # passed on as they come
        started.append(child)
        runtime.close()
        return child

    monkeypatch.setattr(lambda_runtime, "start", close_meanwhile)
    with messages.raises(LocalError):
        runtime.invoke("f", None)
    assert started[0].poll() is not None
    assert not psutil.pid_exists(started[0].pid)
