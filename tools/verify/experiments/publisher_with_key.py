"""A publisher of a store with a key: its roles, the conditions of the key's policy, and its log."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import PLATFORM, repository, store
from tools.verify.trial import Trial, prefix_of

from cdk_triton import TritonMultiModel

_LOG_SECONDS = 300


def _stacks(app: cdk.App) -> None:
    stack = cdk.Stack(app, prefix_of("publisher_with_key"))
    key = kms.Key(stack, "Key", removal_policy=cdk.RemovalPolicy.DESTROY, pending_window=cdk.Duration.days(7))
    TritonMultiModel(stack, "Fleet", store=store(stack, encryption_key=key), platform=PLATFORM).add_publisher()


def _observe(trial: Trial) -> Iterator[Observation]:
    trial.deploy()
    tenants = repository("first").root.parent
    published = subprocess.run(
        [Path(sys.executable).with_name("cdk-triton"), "fleet", "publish", ".", "--fleet", f"{trial.prefix}/Fleet"],
        cwd=tenants,
        capture_output=True,
        text=True,
    )
    last = (published.stdout + published.stderr).strip().splitlines()[-1:]
    yield Observation("runs", published.returncode == 0, " ".join(last))
    logs = trial.client("logs")
    groups = [
        each["logGroupName"]
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix="/aws/vendedlogs/states/")
        for each in page["logGroups"]
        if trial.prefix in each["logGroupName"]
    ]
    events = groups and trial.until(
        lambda: logs.filter_log_events(logGroupName=groups[0])["events"], seconds=_LOG_SECONDS
    )
    yield Observation("log", bool(events), f"{len(events)} events in {groups}")


EXPERIMENT = Experiment(
    parts=("runs", "log"),
    minutes=12,
    dollars=1.05,
    spends="a month of a KMS key, which is deleted after 7 days",
    observe=_observe,
    stacks=_stacks,
)
