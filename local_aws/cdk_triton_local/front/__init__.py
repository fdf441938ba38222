"""The front: the one HTTP server that every client calls.

* `server` decides who answers a request: an `EndpointHost`, one of this package's own APIs, or moto;
* `connection` reads requests, and rejects malformed, foreign and unsigned ones;
* `signatures` checks that a request is signed with the secret of this local AWS;
* `calls` reads the operation and the parameters of a request;
* `unanswered` finds the requests that get no answer.
"""

from cdk_triton_local.front.calls import read_call
from cdk_triton_local.front.server import Routes, Server
from cdk_triton_local.front.signatures import Signatures, SignedRequest, key_and_service
from cdk_triton_local.front.unanswered import unanswered

__all__ = ["Routes", "Server", "Signatures", "SignedRequest", "key_and_service", "read_call", "unanswered"]
