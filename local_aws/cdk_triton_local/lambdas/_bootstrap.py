"""The process of one Lambda function; started by `cdk_triton_local.lambdas`, as a script.

Usage: `python _bootstrap.py SOCKET ARN`. Reads one JSON object per line from the socket (`event`,
`seconds` until it is ended, `skips`: whether its pauses are skipped, `ahead`: the seconds that others have skipped,
`unanswered`: matches the beginnings of HTTP requests that get no answer) and answers each with one line:
`{"result": …}`, `{"error": {"errorMessage", "errorType", "stackTrace"}}`, as Lambda's Python runtime reports failures,
or `{"timed_out": true}` when it ends itself, each with `ahead`. The output of the function goes to its log. Standard
library only.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib
import json
import math
import os
import re
import socket
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

_CONNECT_SECONDS = 127
"""How long Linux tries to connect for a client that sets no timeout (`tcp_syn_retries` in tcp(7))."""


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


class Clock:
    """The time of a function, some seconds ahead of the machine's.

    It takes the place of the functions of `time` before the function is imported, because modules keep them, such as in
    a default argument.

    Attributes:
        ahead: the seconds.
        skips: whether each pause moves the time on at once, also those of botocore between two attempts. Threads that
            pause together skip the time once.
        deadline: when Lambda ends the function, by `time.monotonic`.
        end: ends the process; a skipped pause of the handler does this at the deadline.
    """

    def __init__(self) -> None:
        self.ahead = 0.0
        self.skips = False
        self.deadline = math.inf
        self.end: Callable[[], None] = sys.exit
        self._lock = threading.Lock()
        self._time, self._monotonic, self._sleep = time.time, time.monotonic, time.sleep
        time.time = lambda: self._time() + self.ahead
        time.monotonic = lambda: self._monotonic() + self.ahead
        time.sleep = self._pause  # type: ignore[assignment]  # nobody sleeps for an object with __index__

    def _pause(self, seconds: float) -> None:
        if not self.skips:
            self._sleep(seconds)
            return
        until = self._monotonic() + self.ahead + seconds
        if until > self.deadline:
            if threading.current_thread() is not threading.main_thread():
                self._sleep(seconds)  # Lambda freezes or ends it before the end of its pause
                return
            with self._lock:
                self.ahead = max(self.ahead, self.deadline - self._monotonic())
            self.end()
        self._sleep(0.001)  # other threads go on
        with self._lock:
            self.ahead = max(self.ahead, until - self._monotonic())


class Network:
    """The network of a function, from which no way leads to some services.

    A request to one of them fails as on AWS: the attempt to connect takes as long as the client waits for a connection,
    and then times out. The service is in the request, which `http.client` has made before it connects, also for boto3.

    Attributes:
        unanswered: matches the beginning of each request that gets no answer; "" if there are none.
    """

    def __init__(self) -> None:
        self.unanswered = ""
        self._attempt = threading.local()
        self._send, self._addresses = http.client.HTTPConnection.send, socket.getaddrinfo
        # boto3 makes its connections of this class, in code that is not ours.
        http.client.HTTPConnection.send = lambda *call: self._sending(*call)  # type: ignore[method-assign]
        socket.getaddrinfo = self._address  # the first step of each connection

    def _sending(self, connection: http.client.HTTPConnection, data: Any) -> None:
        if not self.unanswered or not isinstance(data, bytes) or not re.match(self.unanswered.encode(), data):
            self._send(connection, data)
            return
        connection.close()  # it may be from the time when there was a way
        self._attempt.seconds = connection.timeout if isinstance(connection.timeout, int | float) else _CONNECT_SECONDS
        try:
            self._send(connection, data)
        finally:
            self._attempt.seconds = None

    def _address(self, *arguments: Any, **options: Any) -> Any:
        seconds = getattr(self._attempt, "seconds", None)
        if seconds is None:
            return self._addresses(*arguments, **options)
        time.sleep(seconds)
        raise TimeoutError("timed out")


def main(address: str, arn: str) -> None:
    """Answer events until the other side closes the socket."""
    # A line is one write, so that the lines of two processes of a function do not mix in the log that they share.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is what Python starts with
    sys.path[0] = os.environ["LAMBDA_TASK_ROOT"]  # in place of this script's directory
    clock, network, handler = Clock(), Network(), None
    with contextlib.suppress(BaseException):  # the first event gets it, as in Lambda
        handler = load()
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(address)
    stream = channel.makefile("rwb")

    def send(answer: str) -> None:
        sys.stdout.flush()  # the answer makes the log be read
        stream.write(answer.encode() + b"\n")
        stream.flush()

    def end() -> None:
        send(json.dumps({"timed_out": True, "ahead": clock.ahead}))
        os._exit(1)

    clock.end = end
    for line in stream:
        request = json.loads(line)
        clock.ahead, clock.skips, network.unanswered = request["ahead"], request["skips"], request["unanswered"]
        clock.deadline = time.monotonic() + request["seconds"]
        context = Context(arn, time.time() + request["seconds"])
        try:
            handler = handler or load()
            answer = json.dumps({"result": handler(request["event"], context), "ahead": clock.ahead})
        except BaseException as error:
            traceback.print_exc()
            failure = {
                "errorMessage": str(error),
                "errorType": type(error).__name__,
                "stackTrace": traceback.format_tb(error.__traceback__)[1:],
            }
            answer = json.dumps({"error": failure, "ahead": clock.ahead})
        send(answer)


def load() -> Callable[[Any, Context], Any]:
    """Import the function's module and return its handler."""
    module, _, function = os.environ["_HANDLER"].rpartition(".")
    handler: Callable[[Any, Context], Any] = getattr(importlib.import_module(module.replace("/", ".")), function)
    return handler


if __name__ == "__main__":
    main(*sys.argv[1:3])
