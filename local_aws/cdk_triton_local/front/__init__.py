"""The front: the one HTTP server that every client calls.

* `server` decides who answers a request: an `EndpointHost`, one of this package's own APIs, or moto;
* `connection` reads requests, and rejects malformed, foreign and unsigned ones;
* `signatures` checks that a request is signed with the secret of this local AWS.
"""

from cdk_triton_local.front.server import Routes, Server
from cdk_triton_local.front.signatures import Signatures

__all__ = ["Routes", "Server", "Signatures"]
