"""`DirectRuntime`: InvokeEndpoint on urllib3, in half of boto3's time. For the library's own many calls, not public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdk_triton.client.runtime import CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS
from cdk_triton.client.signed_calls import SignedCalls

if TYPE_CHECKING:
    import boto3

__all__ = ["DirectRuntime"]


class DirectRuntime:
    """The calls of `boto3.client("sagemaker-runtime")` that the client needs, configured by the environment.

    It raises botocore's errors, sends each request once, and can be shared between threads. It has none of boto3's
    events, hooks and retries.

    Args:
        connections: how many connections stay open; pass the number of threads.
        read_timeout: seconds that the answer may take.
        session: the boto3 session that has region and credentials; by default boto3's default session.
        fix: what to do instead if only boto3 can be used, for the message.

    Raises:
        ConfigurationError: no AWS region is configured, or the environment sets a proxy or a CA bundle.
    """

    def __init__(
        self,
        connections: int = 10,
        *,
        read_timeout: float = READ_TIMEOUT_SECONDS,
        session: boto3.Session | None = None,
        fix: str = "pass runtime=boto3.client('sagemaker-runtime')",
    ) -> None:
        import urllib3
        from botocore.httpsession import where

        self.connections = connections
        self._calls = SignedCalls(fix, session)
        options: dict[str, Any] = {}
        if self._calls.url.startswith("https:"):
            options = {"cert_reqs": "CERT_REQUIRED", "ca_certs": where()}  # the authorities that boto3 trusts
        self._pool = urllib3.connection_from_url(
            self._calls.url,
            maxsize=connections,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_SECONDS, read=read_timeout),
            **options,
        )

    def invoke_endpoint(self, **arguments: Any) -> dict[str, Any]:
        """Call InvokeEndpoint, with the arguments of boto3's method.

        Raises:
            ClientError: the answer is an error.
            BotoCoreError: there are no credentials, no connection or no answer.
        """
        return self._call("InvokeEndpoint", arguments)

    def invoke_endpoint_async(self, **arguments: Any) -> dict[str, Any]:
        """Call InvokeEndpointAsync, as `invoke_endpoint` does."""
        return self._call("InvokeEndpointAsync", arguments)

    def _call(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from urllib3.exceptions import HTTPError

        call = self._calls.sign(operation, arguments, self._calls.credentials())
        try:
            answer = self._pool.urlopen("POST", call.path, call.body, call.headers, redirect=False)
        except HTTPError as error:
            raise _as_botocore_error(error, call.url) from error
        return self._calls.read(operation, answer.status, answer.headers, answer.data)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def _as_botocore_error(error: Exception, url: str) -> Exception:
    """As `botocore.httpsession.URLLib3Session` translates the errors of urllib3."""
    import botocore.exceptions as ours
    import urllib3.exceptions as theirs

    if isinstance(error, theirs.SSLError):
        return ours.SSLError(endpoint_url=url, error=error)
    if isinstance(error, theirs.NewConnectionError):
        return ours.EndpointConnectionError(endpoint_url=url, error=error)
    if isinstance(error, theirs.ConnectTimeoutError):
        return ours.ConnectTimeoutError(endpoint_url=url, error=error)
    if isinstance(error, theirs.ReadTimeoutError):
        return ours.ReadTimeoutError(endpoint_url=url, error=error)
    if isinstance(error, theirs.ProtocolError):
        return ours.ConnectionClosedError(endpoint_url=url, error=error)
    return ours.HTTPClientError(error=error)
