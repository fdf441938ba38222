"""The world in which the handlers build: an AWS in memory, faults, and stacks that CloudFormation deploys."""

from build_model.cloud import Cloud, Killed, Poll
from build_model.faults import FAULTS, Fault
from build_model.plans import ENSEMBLES, PLANS, Published, publish
from build_model.stack import Operation, Stack

__all__ = [
    "ENSEMBLES",
    "FAULTS",
    "PLANS",
    "Cloud",
    "Fault",
    "Killed",
    "Operation",
    "Poll",
    "Published",
    "Stack",
    "publish",
]
