"""The topic that the alarms of a system go to."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct


def alarm_topic(scope: Construct) -> sns.Topic:
    """A topic that is encrypted with a key of its own: CloudWatch may not use the key of AWS."""
    key = kms.Key(scope, "AlarmsKey", description=f"Alarms of {scope.node.id}", enable_key_rotation=True)
    return sns.Topic(scope, "Alarms", master_key=key, enforce_ssl=True)
