"""Sends SageMaker's events to the rules of EventBridge.

Source: "Events that Amazon SageMaker AI sends to Amazon EventBridge" in SageMaker's developer guide. Events of other
services are not sent, and only SNS topics get an event.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

__all__ = ["EndpointEvents"]


class EndpointEvents:
    """Sends an event for each change of an endpoint's status.

    Args:
        reader: makes a boto3 EventBridge client that reads the rules.
        publisher: makes a boto3 SNS client with the permissions of EventBridge.
        matches: whether a pattern matches an event.
        account: the account.
        region: the region.
    """

    def __init__(
        self,
        reader: Callable[[], Any],
        publisher: Callable[[], Any],
        matches: Callable[[str, Mapping[str, Any]], bool],
        account: str,
        region: str,
    ) -> None:
        self._reader = reader
        self._publisher = publisher
        self._matches = matches
        self._account = account
        self._region = region

    def send(self, arn: str, name: str, configuration: str, status: str, time: float) -> None:
        """Send the event of a status.

        Args:
            arn: the endpoint's ARN.
            name: its name.
            configuration: the name of the configuration in use.
            status: EndpointStatus, as DescribeEndpoint returns it.
            time: seconds since 1970.
        """
        event = {
            "version": "0",
            "detail-type": "SageMaker Endpoint State Change",
            "source": "aws.sagemaker",
            "account": self._account,
            "time": datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self._region,
            "resources": [arn],
            "detail": {
                "EndpointName": name,
                "EndpointArn": arn,
                "EndpointConfigName": configuration,
                "EndpointStatus": re.sub(r"(?<=[a-z])(?=[A-Z])", "_", status).upper(),
            },
        }
        events = self._reader()
        for page in events.get_paginator("list_rules").paginate():
            for rule in page["Rules"]:
                if rule["State"] == "ENABLED" and self._matches(rule.get("EventPattern", ""), event):
                    for target in events.list_targets_by_rule(Rule=rule["Name"])["Targets"]:
                        if ":sns:" in target["Arn"]:
                            self._publisher().publish(TopicArn=target["Arn"], Message=_message(target, event))


def _message(target: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    transformer = target.get("InputTransformer")
    if transformer is None:
        return str(target.get("Input", json.dumps(event)))
    text = str(transformer["InputTemplate"])
    for name, path in (transformer.get("InputPathsMap") or {}).items():
        found = functools.reduce(lambda part, key: part[key], path.removeprefix("$.").split("."), event)
        text = text.replace(f"<{name}>", str(found))
    return text
