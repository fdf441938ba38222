"""CT4xx single-model containers, CT5xx multi-model endpoints, CT65x what an endpoint holds and passes on."""

from __future__ import annotations

from cdk_triton.triton.checks.endpoint import multi_model, multi_model_releases, payloads, single_model

__all__ = ["multi_model", "multi_model_releases", "payloads", "single_model"]
