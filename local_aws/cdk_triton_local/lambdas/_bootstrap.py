"""The process of one Lambda function; started by `cdk_triton_local.lambdas`, as a script.

Usage: `python _bootstrap.py SOCKET ARN`. Reads one JSON object per line from the socket (`event`,
`seconds` until it is ended, `skip`: whether its pauses are skipped)
and answers each with one line: `{"result": …}` or `{"error": {"errorMessage", "errorType", "stackTrace"}}`, as Lambda's
Python runtime reports failures. The output of the function goes to its log. Standard library only.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from typing import Any


class Context:
    """The context object of Lambda's Python runtime, with the members that are modelled here."""

    def __init__(self, arn: str, deadline: float) -> None:
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = "$LATEST"
        self.invoked_function_arn = arn
        self.memory_limit_in_mb = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
        self.aws_request_id = str(uuid.uuid4())
        self.log_group_name = f"/aws/lambda/{self.function_name}"
        self.log_stream_name = f"{time.strftime('%Y/%m/%d')}/[$LATEST]local"
        self._deadline = deadline

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is ended."""
        return max(0, int((self._deadline - time.time()) * 1000))


@contextlib.contextmanager
def skipped_pauses() -> Iterator[None]:
    """Let each pause of a handler move the time on at once; botocore pauses between two attempts, too.

    Threads that pause together skip the time once. Afterwards, the time is that of the machine again.
    """
    originals = real_time, real_monotonic, real_sleep = time.time, time.monotonic, time.sleep
    skipped = 0.0
    lock = threading.Lock()

    def sleep(seconds: float) -> None:
        nonlocal skipped
        until = real_monotonic() + skipped + seconds
        real_sleep(0.001)  # other threads go on
        with lock:
            skipped = max(skipped, until - real_monotonic())

    time.time = lambda: real_time() + skipped
    time.monotonic = lambda: real_monotonic() + skipped
    time.sleep = sleep  # type: ignore[assignment]  # nobody sleeps for an object with __index__
    try:
        yield
    finally:
        time.time, time.monotonic, time.sleep = originals


def main(address: str, arn: str) -> None:
    """Answer events until the other side closes the socket."""
    # A line is one write, so that the lines of two processes of a function do not mix in the log that they share.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is what Python starts with
    sys.path[0] = os.environ["LAMBDA_TASK_ROOT"]  # in place of this script's directory
    handler = None
    with contextlib.suppress(BaseException):  # the first event gets it, as in Lambda
        handler = load()
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(address)
    stream = channel.makefile("rwb")
    for line in stream:
        request = json.loads(line)
        context = Context(arn, time.time() + request["seconds"])
        try:
            handler = handler or load()
            with skipped_pauses() if request["skip"] else contextlib.nullcontext():
                answer = json.dumps({"result": handler(request["event"], context)})
        except BaseException as error:
            traceback.print_exc()
            answer = json.dumps(
                {
                    "error": {
                        "errorMessage": str(error),
                        "errorType": type(error).__name__,
                        "stackTrace": traceback.format_tb(error.__traceback__)[1:],
                    }
                }
            )
        sys.stdout.flush()  # the answer makes the log be read
        stream.write(answer.encode() + b"\n")
        stream.flush()


def load() -> Callable[[Any, Context], Any]:
    """Import the function's module and return its handler."""
    module, _, function = os.environ["_HANDLER"].rpartition(".")
    handler: Callable[[Any, Context], Any] = getattr(importlib.import_module(module.replace("/", ".")), function)
    return handler


if __name__ == "__main__":
    main(*sys.argv[1:3])
