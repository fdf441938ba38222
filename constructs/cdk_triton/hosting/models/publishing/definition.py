"""The definition of a publisher's state machine, in Amazon States Language with JSONPath.

::

    Prepare → [HasBuilds → Builds, a distributed map: Build → IsBuilt → Wait → Build …, (failed: RecordBuilds)]
            → Ensembles, a distributed map: Change → (failed: Record) → Count

A publisher without recipes does not have the states in brackets. Each child of `Builds` is a batch, which is one build.
The functions are those of `lambda/artifacts/publishing.py`. The map has one child execution for each ensemble, because
an inline map runs 40 iterations at a time, in one history of 25,000 events ("Orchestrating large-scale parallel
workloads",
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-orchestrate-large-scale-parallel-workloads.html).

After a failed task, a state records the reason, and `Count` fails the execution in the end. So one bad ensemble does
not stop the others. A child can fail nevertheless, because `States.ALL` catches neither `States.Runtime` nor
`States.DataLimitExceeded` ("Handling errors in Step Functions workflows"). By default the first child that fails ends
the map run, which stops the other children. So each map has `ALL_FAILURES`.

A child returns `{}`, and a ResultWriter stores the results. Nothing reads them, but without a ResultWriter, a map fails
when its results exceed 256 KiB ("Quotas related to state machine executions").

No `ResultPath` is null, because `Stack.to_json_string` drops null values (aws-cdk-lib 2.275).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cdk_triton.hosting.store.provider import NOT_RUN

__all__ = ["MAX_CHANGE_MINUTES", "Builds", "Functions", "definition"]

MAX_CHANGE_MINUTES: Final = 15
"""The longest time of a function ("Lambda quotas"). Its speed on AWS was not measured. On the machine of the
benchmarks, a processor unpacks and hashes 96 to 105 MB/s (docs/many_ensembles.md), and a function of 512 MB has 0.29 of
a processor."""

WAITING_ATTEMPTS: Final = 1000
"""The number of retries of a function that Lambda did not run, in the end one every half minute. If the account has no
free execution, publishing is only slower."""

FAULT_ATTEMPTS: Final = 8
"""The number of retries of a function after a transient fault, or after the end of its process."""

_END: Final = {"Type": "Pass", "Result": {}, "End": True}

ALL_FAILURES: Final = 100_000_000
"""More children than a request has, so a map run tolerates the failure of all ("Setting failure thresholds for
Distributed Map states in Step Functions"). A percentage of 100 is impossible, because moto's grammar requires a decimal
point, and the CDK writes 100.0 as 100. moto enforces neither."""

LONGEST_PAUSE: Final = 30
"""Seconds between two attempts."""


@dataclass(frozen=True)
class Functions:
    """The ARNs of the functions.

    Attributes:
        prepare: reads the request and writes its items.
        change: changes one ensemble.
        record: records why an ensemble was not changed.
        count: counts the changed ensembles.
        build: the store's handler, which builds a batch. None without recipes.
    """

    prepare: str
    change: str
    record: str
    count: str
    build: str | None = None


@dataclass(frozen=True)
class Builds:
    """The arguments of the function that builds.

    Attributes:
        max_builds: how many builds run at a time.
        assets: the bucket of the description and of the build program.
        description: the object key of the publisher's description.
        sha256: the SHA-256 of the description.
        image: the URI of the image that serves and builds.
    """

    max_builds: int
    assets: str
    description: str
    sha256: str
    image: str


def definition(
    functions: Functions,
    *,
    bucket: str,
    prefix: str,
    platform: str,
    partition: str,
    max_concurrency: int,
    builds: Builds | None = None,
) -> dict[str, Any]:
    """The definition of the state machine.

    Args:
        functions: the functions that it calls.
        bucket: the name of the store's bucket.
        prefix: the prefix of the object keys that the machine writes.
        platform: the label of the platform. An execution keeps it while a deployment changes the functions.
        partition: the partition of the state machine, such as `aws`.
        max_concurrency: the number of ensembles that are changed at a time.
        builds: the builds of a publisher with recipes, or None.
    """
    execution = {"execution.$": "$$.Execution.Id", "platform": platform}
    request: dict[str, Any] = {**execution, "publish.$": "$.publish"}
    storage = _MapStorage(bucket, prefix, partition)
    ensembles = storage.map(
        "$.items",
        max_concurrency,
        {
            "item.$": "$$.Map.Item.Value",
            "publish.$": "$.publish",
            "execution.$": "$.execution",
            "platform": platform,
        },
        _change(functions, platform),
        # If the map ends early, Count finds the ensembles that it did not reach.
        after="Count",
    )
    if builds is None:
        building, first, prepare = {}, "Ensembles", request
    else:
        building, first = _builds(functions, builds, storage, platform), "HasBuilds"
        prepare = {**request, "max_builds": builds.max_builds}
    return {
        "Comment": "cdk-triton: publishes, rolls back and unpublishes ensembles",
        "StartAt": "Prepare",
        "States": {
            "Prepare": _task(functions.prepare, prepare, Next=first),
            **building,
            "Ensembles": ensembles,
            "Count": _task(functions.count, {"execution.$": "$.execution", "platform": platform}, End=True),
        },
    }


@dataclass(frozen=True)
class _MapStorage:
    """The bucket and the prefix that distributed maps read and write."""

    bucket: str
    prefix: str
    partition: str

    def map(
        self, items: str, max_concurrency: int, selector: Mapping[str, str], child: Mapping[str, Any], after: str
    ) -> dict[str, Any]:
        """A distributed map. `after` follows it, even if an error ends it early."""
        return {
            "Type": "Map",
            "MaxConcurrency": max_concurrency,
            "ToleratedFailureCount": ALL_FAILURES,
            "ItemReader": {
                "Resource": f"arn:{self.partition}:states:::s3:getObject",
                "ReaderConfig": {"InputType": "JSON"},
                "Parameters": {"Bucket": self.bucket, "Key.$": items},
            },
            "ItemSelector": dict(selector),
            "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **child},
            "ResultWriter": {
                "Resource": f"arn:{self.partition}:states:::s3:putObject",
                # Step Functions adds the id of the map run.
                "Parameters": {"Bucket": self.bucket, "Prefix": f"{self.prefix}results"},
            },
            "ResultPath": "$.map",
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.map", "Next": after}],
            "Next": after,
        }


def _builds(functions: Functions, builds: Builds, storage: _MapStorage, platform: str) -> dict[str, Any]:
    """The states that run builds. `Change` finds the archives that are missing afterwards."""
    assert functions.build is not None  # of a publisher with recipes
    publication = {
        "publish.$": "$.publish",
        "execution.$": "$.execution",
        "started_at.$": "$.started_at",
        "batch.$": "$.batch",
        "assets": builds.assets,
        "description": builds.description,
        "sha256": builds.sha256,
        "image": builds.image,
    }
    record = {"execution.$": "$.execution", "batch.$": "$.batch", "failure.$": "$.failure", "platform": platform}
    child = {
        "StartAt": "Build",
        "States": {
            "Build": _task(
                functions.build,
                {"Publication": publication},
                Catch=[_caught("failure", "RecordBuilds")],
                ResultPath="$.polled",
                Next="IsBuilt",
            ),
            "IsBuilt": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.polled.IsComplete", "BooleanEquals": True, "Next": "Built"}],
                "Default": "Wait",
            },
            "Wait": {"Type": "Wait", "SecondsPath": "$.polled.Seconds", "Next": "Build"},
            "RecordBuilds": _task(
                functions.record, record, Catch=[_caught("unrecorded", "Built")], ResultPath="$.recorded", Next="Built"
            ),
            "Built": _END,
        },
    }
    selected = {"batch.$": "$$.Map.Item.Value"} | {
        f"{name}.$": f"$.{name}" for name in ("publish", "execution", "started_at")
    }
    return {
        "HasBuilds": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.has_builds", "BooleanEquals": True, "Next": "Builds"}],
            "Default": "Ensembles",
        },
        "Builds": {
            # The label is part of the ARN of the map run, by which the command distinguishes builds from ensembles.
            "Label": "Builds",
            **storage.map("$.builds", builds.max_builds, selected, child, after="Ensembles"),
        },
    }


def _change(functions: Functions, platform: str) -> dict[str, Any]:
    record = {"execution.$": "$.execution", "item.$": "$.item", "failure.$": "$.failure", "platform": platform}
    # RetryCount of the state distinguishes a repeated attempt from the first one ("Accessing execution data from the
    # Context object").
    change = {"item.$": "$.item", "publish.$": "$.publish", "execution.$": "$.execution", "platform.$": "$.platform"}
    change |= {"state.$": "$$.State"}
    # Count finds an ensemble that is not in the requested state and has no recorded failure.
    unrecorded = [_caught("unrecorded", "Done")]
    return {
        "StartAt": "Change",
        "States": {
            "Change": _task(
                functions.change, change, Catch=[_caught("failure", "Record")], ResultPath="$.changed", Next="Done"
            ),
            "Record": _task(functions.record, record, Catch=unrecorded, ResultPath="$.recorded", Next="Done"),
            "Done": _END,
        },
    }


def _caught(name: str, then: str) -> dict[str, Any]:
    return {"ErrorEquals": ["States.ALL"], "ResultPath": f"$.{name}", "Next": then}


def _task(function: str, parameters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    pause = {"BackoffRate": 2, "MaxDelaySeconds": LONGEST_PAUSE, "JitterStrategy": "FULL"}
    return {
        "Type": "Task",
        "Resource": function,
        "Parameters": dict(parameters),
        "Retry": [
            {"ErrorEquals": list(NOT_RUN), "IntervalSeconds": 1, "MaxAttempts": WAITING_ATTEMPTS, **pause},
            {"ErrorEquals": ["ArtifactError"], "MaxAttempts": 0},  # another attempt fails too
            {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "MaxAttempts": FAULT_ATTEMPTS, **pause},
        ],
        **more,
    }
