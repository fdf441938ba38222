"""moto's dispatcher of requests to services. It fails with a name if moto does not have the service or operation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from cdk_triton.errors import LocalError
from cdk_triton_local.moto_state.missing import missing_operation

__all__ = ["Dispatcher", "NoServiceError"]


class NoServiceError(LocalError):
    """A request is for a service that moto does not have."""


class Dispatcher(DomainDispatcherApplication):
    """The WSGI application of all of moto's services, with errors for unknown services, for which moto fails."""

    def __init__(self, create_app: Callable[[Any], Any]) -> None:
        super().__init__(lambda service: _corrected(service, create_app(service)))
        self._known: dict[str | None, Any] = {}  # moto compares a host with the patterns of all services

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request.

        Raises:
            NoServiceError: moto does not have the service.
            NoOperationError: moto does not implement the operation.
        """
        action = self.get_action_from_body(self._get_body(environ))  # keeps the body for moto
        try:
            return super().__call__(environ, start_response)
        except NotImplementedError as error:
            host = self.infer_service_region_host(environ, environ.get("PATH_INFO", ""))
            raise missing_operation(environ, action or "", str(self.get_backend_for_host(host))) from error

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


def _corrected(service: str, app: Any) -> Any:
    _without_html_pages(app)
    if service == "iam":
        app.wsgi_app = _one_at_a_time(app.wsgi_app)
    return app


def _one_at_a_time(application: Callable[..., Any]) -> Callable[..., Any]:
    """Let requests wait for each other: moto fails if a policy comes or goes while it looks through all policies."""
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        with lock:
            return application(environ, start_response)

    return answer


def _without_html_pages(app: Any) -> None:
    """Raise an error for an unknown path, for which Flask would answer with a page of HTML."""
    from flask import request
    from werkzeug.exceptions import MethodNotAllowed, NotFound

    def require_path() -> None:
        if isinstance(request.routing_exception, NotFound | MethodNotAllowed):
            raise NotImplementedError(request.path)

    app.before_request(require_path)
