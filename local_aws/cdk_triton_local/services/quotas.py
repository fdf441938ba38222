"""Service Quotas of the local AWS: those that an endpoint with GPUs and its builds need.

Only the concurrent executions of Lambda functions are enforced here.

moto has the quotas of VPCs only. Names are AWS's own. The codes of SageMaker's quotas for instance types are made up;
they stay the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from cdk_triton.sagemaker import gpu_instances, processing_instance
from cdk_triton_local.lambdas import CONCURRENT_EXECUTIONS
from cdk_triton_local.wire import JsonApi, JsonApiError

__all__ = ["VALUE", "service_quotas"]

VALUE: Final = 100
"""The value of every other quota: nothing limits what runs here."""

_CODEBUILD_GPU: Final = "L-F1FE1B52"
_EXECUTIONS: Final = "L-B99A9384"
_ACROSS_ENDPOINTS: Final = "Number of instances across active endpoints"
_PAGE: Final = 100
"""Most quotas of one answer, and the number where none is asked for."""

_NAMES: Final = {"codebuild": "AWS CodeBuild", "lambda": "AWS Lambda", "sagemaker": "Amazon SageMaker"}


def service_quotas(region: str, account: str) -> JsonApi:
    """The handlers of GetServiceQuota, ListServiceQuotas and ListAWSDefaultServiceQuotas."""
    listed = {service: _quotas(service, region, account) for service in _NAMES}
    listing = _listing(listed)
    operations = {
        "GetServiceQuota": lambda request: {"Quota": _one(listed, request)},
        "ListAWSDefaultServiceQuotas": listing,
        "ListServiceQuotas": listing,
    }
    return JsonApi("service-quotas", operations, "IllegalArgumentException")


def _listing(listed: Mapping[str, list[dict[str, Any]]]) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    def answer(request: dict[str, Any]) -> Mapping[str, Any]:
        quotas = _of_service(listed, request)
        size, first = request.get("MaxResults", _PAGE), request.get("NextToken", "0")
        if not first.isdecimal():
            raise JsonApiError(f"the token {first!r} is not one of this service", "InvalidPaginationTokenException")
        end = int(first) + size
        return {"Quotas": quotas[int(first) : end], **({"NextToken": str(end)} if end < len(quotas) else {})}

    return answer


def _one(listed: Mapping[str, list[dict[str, Any]]], request: dict[str, Any]) -> dict[str, Any]:
    quota = next((each for each in _of_service(listed, request) if each["QuotaCode"] == request["QuotaCode"]), None)
    if quota is None:
        raise JsonApiError(f"the service has no quota {request['QuotaCode']}", "NoSuchResourceException")
    return quota


def _of_service(listed: Mapping[str, list[dict[str, Any]]], request: dict[str, Any]) -> list[dict[str, Any]]:
    service = request["ServiceCode"]
    if service not in listed:
        raise JsonApiError(
            f"the local AWS has quotas of {' and '.join(listed)}, but none of {service!r}", "NoSuchResourceException"
        )
    return listed[service]


def _quotas(service: str, region: str, account: str) -> list[dict[str, Any]]:
    if service == "codebuild":
        names = {"Concurrently running builds for Linux GPU Small environment": _CODEBUILD_GPU}
    elif service == "lambda":
        names = {"Concurrent executions": _EXECUTIONS}
    else:
        instances = gpu_instances().values()
        endpoints = [f"{each.name} for endpoint usage" for each in instances if each.hosting]
        jobs = [f"{each.name} for processing job usage" for each in instances if processing_instance(each) == each]
        names = {name: _code(name) for name in sorted((*endpoints, *jobs))} | {_ACROSS_ENDPOINTS: "L-7A3DF611"}
    return [
        {
            "ServiceCode": service,
            "ServiceName": _NAMES[service],
            "QuotaArn": f"arn:aws:servicequotas:{region}:{account}:{service}/{code}",
            "QuotaCode": code,
            "QuotaName": name,
            "Value": float(CONCURRENT_EXECUTIONS if code == _EXECUTIONS else VALUE),
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }
        for name, code in names.items()
    ]


def _code(name: str) -> str:
    return f"L-{hashlib.sha256(name.encode()).hexdigest()[:8].upper()}"
