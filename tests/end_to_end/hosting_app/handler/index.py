"""The handlers of the app's custom resource."""

from __future__ import annotations

import os
from typing import Any


def on_event(event: dict[str, Any], _: object) -> dict[str, Any]:
    """Another version is another artifact."""
    return {"PhysicalResourceId": f"artifacts-{event['ResourceProperties']['Version']}"}


def is_complete(_: dict[str, Any], __: object) -> dict[str, Any]:
    """At once."""
    return {"IsComplete": True, "Data": {"Region": os.environ["AWS_REGION"]}}
