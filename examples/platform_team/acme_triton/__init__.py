"""Triton endpoints as Acme runs them."""

from __future__ import annotations

from acme_triton.endpoint import AcmeEndpoint

__all__ = ["AcmeEndpoint"]
