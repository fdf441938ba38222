"""The definition of a publisher's state machine, in Amazon States Language with JSONPath.

::

    Prepare → Ensembles, a distributed map: Change → (Failed: Record) → Count

The functions are those of `lambda/artifacts/publishing.py`. The map has one child execution for each ensemble, because
an inline map has 40 at a time and one history of 25,000 events for all ("Orchestrating large-scale parallel workloads",
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-orchestrate-large-scale-parallel-workloads.html).

No child fails: a task that fails leads to a state that records why, and `Count` fails the execution in the end. So one
bad ensemble does not stop the others, and the threshold of failures, which moto does not enforce, does not matter. A
child returns `{}`, and a ResultWriter takes the results, because without one more than 256 KiB of them fail the map
("Quotas related to state machine executions"). Nothing reads what it writes.

No `ResultPath` is null, because `Stack.to_json_string` drops what is null (aws-cdk-lib 2.275).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cdk_triton.artifacts.layout import PUBLISHING_PREFIX
from cdk_triton.hosting.store.provider import NOT_RUN

__all__ = ["MAX_CHANGE_MINUTES", "Functions", "definition"]

MAX_CHANGE_MINUTES: Final = 15
"""The longest time of a function ("Lambda quotas"). How fast it reads an archive on AWS was not measured. A processor
here unpacks and hashes 96 to 105 MB/s (docs/scale.md), and a function of 512 MB has 0.29 of one."""

WAITING_ATTEMPTS: Final = 1000
"""How often a function that Lambda did not run is called again, every half minute in the end: an account without a free
execution only makes publishing slower."""

FAULT_ATTEMPTS: Final = 8
"""How often a function is called again that met a fault which may pass, or whose process ended."""

RESULTS_PREFIX: Final = f"{PUBLISHING_PREFIX}results"
"""Step Functions adds the id of the map run."""

LONGEST_PAUSE: Final = 30
"""Seconds between two attempts."""


@dataclass(frozen=True)
class Functions:
    """The ARNs of the functions.

    Attributes:
        prepare: reads the request and lists what is to do.
        change: changes one ensemble.
        record: writes down why one was not changed.
        count: counts what is done.
    """

    prepare: str
    change: str
    record: str
    count: str


def definition(functions: Functions, *, bucket: str, partition: str, max_concurrency: int) -> dict[str, Any]:
    """The definition.

    Args:
        functions: what does the work.
        bucket: the name of the store's bucket.
        partition: of the state machine, as in `aws`.
        max_concurrency: how many ensembles are changed at a time.
    """
    execution = {"execution.$": "$$.Execution.Id"}
    return {
        "Comment": "cdk-triton: publishes, rolls back and unpublishes ensembles",
        "StartAt": "Prepare",
        "States": {
            "Prepare": _task(functions.prepare, {**execution, "publish.$": "$.publish"}, Next="Ensembles"),
            "Ensembles": {
                "Type": "Map",
                "MaxConcurrency": max_concurrency,
                "ItemReader": {
                    "Resource": f"arn:{partition}:states:::s3:getObject",
                    "ReaderConfig": {"InputType": "JSON"},
                    "Parameters": {"Bucket": bucket, "Key.$": "$.items"},
                },
                "ItemSelector": {
                    "item.$": "$$.Map.Item.Value",
                    "publish.$": "$.publish",
                    "publisher.$": "$.publisher",
                    "execution.$": "$.execution",
                },
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    "StartAt": "Change",
                    "States": _child(functions),
                },
                "ResultWriter": {
                    "Resource": f"arn:{partition}:states:::s3:putObject",
                    "Parameters": {"Bucket": bucket, "Prefix": RESULTS_PREFIX},
                },
                "ResultPath": "$.map",
                # Whatever ends the map early, Count finds the ensembles that it did not reach.
                "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.map", "Next": "Count"}],
                "Next": "Count",
            },
            "Count": _task(functions.count, {"execution.$": "$.execution"}, End=True),
        },
    }


def _child(functions: Functions) -> dict[str, Any]:
    failed = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "Record"}
    # Count finds the ensemble that neither is what was asked for nor has a failure.
    unrecorded = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.unrecorded", "Next": "Done"}
    record = {"execution.$": "$.execution", "item.$": "$.item", "failure.$": "$.failure"}
    return {
        "Change": _task(functions.change, None, Catch=[failed], ResultPath="$.changed", Next="Done"),
        "Record": _task(functions.record, record, Catch=[unrecorded], ResultPath="$.recorded", Next="Done"),
        "Done": {"Type": "Pass", "Result": {}, "End": True},
    }


def _task(function: str, parameters: Mapping[str, Any] | None, **more: Any) -> dict[str, Any]:
    pause = {"BackoffRate": 2, "MaxDelaySeconds": LONGEST_PAUSE, "JitterStrategy": "FULL"}
    return {
        "Type": "Task",
        "Resource": function,
        **({} if parameters is None else {"Parameters": dict(parameters)}),
        "Retry": [
            {"ErrorEquals": list(NOT_RUN), "IntervalSeconds": 1, "MaxAttempts": WAITING_ATTEMPTS, **pause},
            {"ErrorEquals": ["ArtifactError"], "MaxAttempts": 0},  # another attempt fails too
            {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "MaxAttempts": FAULT_ATTEMPTS, **pause},
        ],
        **more,
    }
