"""The front: the one HTTP server that every client talks to.

`server` decides who answers a request: an `EndpointHost`, one of this package's own APIs, or moto.
"""

from cdk_triton.local.front.server import Routes, Server

__all__ = ["Routes", "Server"]
