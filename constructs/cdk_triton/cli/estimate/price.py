"""The price of an instance hour: from AWS's Price List API, or from an option; this library has no table of prices."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cdk_triton._file_cache import NO_CACHE, cache_directory

__all__ = ["Price", "given", "of_api"]

_API_REGION = "us-east-1"
"""The API answers here for all regions ("AWS Price List Query API endpoints")."""


@dataclass(frozen=True)
class Price:
    """US dollars for an hour of an instance, with the source."""

    per_hour: float
    source: str


def given(per_hour: float) -> Price:
    """The price of `--price-per-hour`."""
    return Price(per_hour, f"--price-per-hour, {_today()}")


def of_api(instance_type: str, region: str) -> Price | str:
    """The on-demand price of hosting on an instance type; or a sentence with the reason that it is not known.

    An answer is cached for a day, with its date, so that a comparison of policies does not call AWS again.
    """
    name = f"{instance_type} in {region}"
    cached = _cached()
    today = _today()
    if cached.get(name, ("", 0.0))[0] != today:
        found = _asked(instance_type, region)
        if isinstance(found, str):
            return found
        cached[name] = today, found
        _cache(cached)
    day, per_hour = cached[name]
    return Price(per_hour, f"AWS Price List API, AmazonSageMaker, {name}, {day}")


def _asked(instance_type: str, region: str) -> float | str:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    from cdk_triton.cli.artifacts.aws import is_loopback

    if is_loopback(os.environ.get("AWS_ENDPOINT_URL", "")):
        return "the local AWS has no prices: add --price-per-hour"
    config = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 2})
    wanted = {"regionCode": region, "instanceName": instance_type, "component": "Hosting"}
    filters: Any = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
    try:
        client = boto3.client("pricing", region_name=_API_REGION, config=config)
        answer = client.get_products(ServiceCode="AmazonSageMaker", Filters=filters)
    except (BotoCoreError, ClientError) as error:
        return f"AWS's Price List API did not answer ({str(error).rstrip('.')}): add --price-per-hour"
    products = [json.loads(each) for each in answer.get("PriceList", [])]
    prices = {price for each in products if _is_hosting(each, instance_type) for price in _on_demand(each)}
    if len(prices) != 1:
        found = "no price" if not prices else f"{len(prices)} prices"
        return f"AWS's Price List API has {found} of hosting on {instance_type} in {region}: add --price-per-hour"
    return prices.pop()


def _cached() -> dict[str, tuple[str, float]]:
    """The day and the price by name; empty if the file cannot be read."""
    if NO_CACHE in os.environ:
        return {}
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
        return {str(name): (str(day), float(price)) for name, (day, price) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _cache(prices: Mapping[str, tuple[str, float]]) -> None:
    """A file that cannot be written is ignored."""
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        temporary = _file().with_name(f"{_file().name}.{os.getpid()}")
        temporary.write_text(json.dumps(prices), encoding="utf-8")
        temporary.replace(_file())


def _file() -> Path:
    return cache_directory() / "prices.json"


def _is_hosting(product: Mapping[str, Any], instance_type: str) -> bool:
    """Whether this is the price of a real-time endpoint; training and notebooks have other components.

    Public programs that read the list of AmazonSageMaker use these attributes; AWS does not document them.
    """
    attributes = product.get("product", {}).get("attributes", {})
    return bool(attributes.get("component") == "Hosting" and attributes.get("instanceName") == instance_type)


def _on_demand(product: Mapping[str, Any]) -> Iterator[float]:
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            if price := float(dimension.get("pricePerUnit", {}).get("USD", 0)):
                yield price


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")
