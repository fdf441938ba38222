"""moto's dispatcher of requests to services, which fails with a name where moto does not have the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from cdk_triton.errors import LocalError

__all__ = ["Dispatcher", "NoServiceError"]


class NoServiceError(LocalError):
    """A request is for a service that moto does not have."""


class Dispatcher(DomainDispatcherApplication):
    """The WSGI application of all services of moto. moto prints a line for an unknown service, and then fails."""

    def __init__(self, create_app: Callable[[Any], Any]) -> None:
        super().__init__(create_app)
        self._known: dict[str | None, Any] = {}  # moto compares a host with the patterns of all services

    def get_backend_for_host(self, host: str | None) -> Any:
        """The service of a host.

        Raises:
            NoServiceError: moto does not have it.
        """
        if host not in self._known:
            self._known[host] = self._found(host)
        return self._known[host]

    def _found(self, host: str | None) -> Any:
        is_of_a_service = host is not None and "amazonaws.com" in host
        if is_of_a_service and not any(pattern.match(f"http://{host}") for _, pattern in self.backend_url_patterns):
            raise NoServiceError(f"moto does not have the service of {host}")
        return super().get_backend_for_host(host)
