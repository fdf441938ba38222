"""An HTTP server that gives every request the same binary answer of 1.6 kB: prints its port, and ends with its input.

A request for a stream gets 100 events of a generating model, each a part of its own.

It parses no more than the length of a request, so that the client under test is the slower side.
"""

from __future__ import annotations

import asyncio
import json
import sys

from cdk_triton_local.wire import event_stream

HEAD = json.dumps(
    {
        "model_name": "text",
        "model_version": "1",
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1, 384], "parameters": {"binary_data_size": 1536}},
        ],
    }
).encode()
BODY = HEAD + bytes(1536)
ANSWER = (
    f"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.sagemaker-triton.binary+json;json-header-size={len(HEAD)}\r\n"
    f"x-Amzn-Invoked-Production-Variant: AllTraffic\r\nContent-Length: {len(BODY)}\r\n\r\n"
).encode() + BODY


EVENT = b'data: {"TEXT":" token","model_name":"text","model_version":"1"}\n\n'
PART = event_stream.payload_part(EVENT)
STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"
    b"X-Amzn-SageMaker-Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    + 100 * (b"%x\r\n%b\r\n" % (len(PART), PART))
    + b"0\r\n\r\n"
)


class Connection(asyncio.Protocol):
    """Answers one request after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport, self.received = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer each whole request."""
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            size = int(head[head.index(b"content-length:") + 15 :].split(b"\r\n", 1)[0])
            if len(self.received) < end + 4 + size:
                return
            self.received = self.received[end + 4 + size :]
            assert isinstance(self.transport, asyncio.WriteTransport)
            self.transport.write(STREAM if b"invocations-response-stream" in head else ANSWER)


async def main() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
