"""The permissions that the guide lists for a command, as a policy, and those that the source of a command needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import boto3
from tests.hosting.conftest import ROOT
from tests.permissions.requests import actions_of

__all__ = ["ARTIFACTS", "DOCTOR", "INVOKE_AND_BENCH", "Page", "actions_in"]

_ACTION = re.compile(r"`([a-z0-9-]+:[A-Z]\w+)`")

_ANY: Final = ("*",)
_REGION: Final = ":us-east-1:123456789012:"
_ASSETS: Final = "cdk-hnb659fds-assets-123456789012-us-east-1"


@dataclass(frozen=True)
class Page:
    """A table with the columns "actions" and "on".

    Attributes:
        file: the page, below docs.
        after: the text before the table.
        places: the resources that a cell of the column "on" means.
        more: permissions that the text has without a table.
    """

    file: str
    after: str
    places: Mapping[str, Sequence[str]]
    more: Sequence[tuple[str, str]] = ()

    def policy(self, keys: Mapping[str, str]) -> dict[str, Any]:
        """The policy of somebody who gives the command exactly these permissions, with a statement for each row.

        Args:
            keys: the ARNs of KMS keys.
        """
        rows = [
            {"Effect": "Allow", "Action": actions, "Resource": [keys.get(each, each) for each in self._meant(on)]}
            for actions, on in (*self._rows(), *(([action], on) for action, on in self.more))
        ]
        return {"Version": "2012-10-17", "Statement": rows}

    def _rows(self) -> Iterator[tuple[list[str], str]]:
        text = (ROOT / "docs" / self.file).read_text(encoding="utf-8").partition(self.after)[2]
        head, _, *rows = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
        columns = _cells(head)
        for row in rows:
            cells = dict(zip(columns, _cells(row), strict=True))
            yield _ACTION.findall(cells["actions"]), cells["on"]

    def _meant(self, on: str) -> Sequence[str]:
        if on.startswith("`*`"):
            return _ANY
        assert on in self.places, f"tests/permissions/pages.py does not know what {self.file} means by {on!r}"
        return self.places[on]


def actions_in(*folders: str) -> set[str]:
    """The actions of the methods of boto3 whose names are in the source of commands."""
    files = (file for folder in folders for file in (ROOT / "constructs" / "cdk_triton" / "cli" / folder).glob("*.py"))
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    found: set[str] = set()
    for service in sorted(_SERVICES & set(re.findall(r'"([a-z0-9-]+)"', source))):
        client = boto3.client(service, region_name="eu-west-1")  # type: ignore[call-overload]  # known names only
        for method, name in client.meta.method_to_api_mapping.items():
            if f".{method}(" in source or f'"{method}"' in source:  # or the name is an argument of a paginator
                found |= {*actions_of(service, name)}
    return found - {"sts:GetCallerIdentity"}  # which needs no permission


_SERVICES: Final = {
    *("cloudformation", "cloudwatch", "ecr", "iam", "lambda", "logs", "s3", "sagemaker", "service-quotas"),
    *("ssm", "stepfunctions", "sts"),
}


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


_KEY_OF_STORE: Final = {"the KMS key of a store that has `encryption_key`": ["the store's key"]}


def _stacks(*names: str) -> tuple[str, ...]:
    return tuple(f"arn:aws:cloudformation{_REGION}stack/{name}/*" for name in names)


def _of_sagemaker(*kinds: str) -> tuple[str, ...]:
    return tuple(f"arn:aws:sagemaker{_REGION}{kind}/*" for kind in kinds)


def _below(*prefixes: str) -> tuple[str, ...]:
    return tuple(f"arn:aws:s3:::the-store-*/{prefix}/*" for prefix in prefixes)


INVOKE_AND_BENCH: Final = Page(
    "client.md",
    "The command uses your AWS credentials and needs these permissions:\n",
    {
        "the endpoint": _of_sagemaker("endpoint"),
        "the endpoint, and the component with `--component`": _of_sagemaker("endpoint", "inference-component"),
        "`async/input/*` of the endpoint's bucket": ("arn:aws:s3:::models/async/input/*",),
        "`async/output/*` and `async/failures/*` of the endpoint's bucket": (
            "arn:aws:s3:::models/async/output/*",
            "arn:aws:s3:::models/async/failures/*",
        ),
        "the endpoint's bucket": ("arn:aws:s3:::models",),
        "all resources of these types in the region": _of_sagemaker("endpoint-config", "model", "inference-component"),
        "the store's bucket": ("arn:aws:s3:::the-store-*",),
        "`artifacts/*`, `fleets/*` and `catalogue/*` of the store": _below("artifacts", "fleets", "catalogue"),
        **_KEY_OF_STORE,
        "the KMS key of the endpoint's bucket, if it has one": ["the endpoint's key"],
    },
    more=[("cloudwatch:GetMetricStatistics", "`*`")],  # "The command needs …" in load_tests.md
)

ARTIFACTS: Final = Page(
    "store.md",
    "`cdk-triton artifacts` uses your own permissions:\n",
    {
        "the store's stack": _stacks("the-store"),
        "the functions of that stack": (f"arn:aws:lambda{_REGION}function:*",),
        "the store's bucket": ("arn:aws:s3:::the-store-*",),
        "`artifacts/*`, `fleets/*`, `catalogue/*` and `staging/*` of the store": _below(
            "artifacts", "fleets", "catalogue", "staging"
        ),
        **_KEY_OF_STORE,
        "all stacks of the region": _stacks("Models"),  # the others here, so that each row has to be needed
        "the stacks of the stores": _stacks("any"),
        "all resources of these types in the region": _of_sagemaker(
            "model", "endpoint-config", "endpoint", "inference-component", "model-package"
        ),
        "`artifacts/*` and `fleets/*` of the store": _below("artifacts", "fleets"),
        "`deletions/*` of the store": _below("deletions"),
        "the store's handler: the Lambda function with the entry point `artifacts.is_complete`": (
            f"arn:aws:lambda{_REGION}function:the-store-IsComplete*",
        ),
        "the bootstrap's file publishing role": (
            "arn:aws:iam::123456789012:role/cdk-hnb659fds-file-publishing-role-123456789012-us-east-1",
        ),
        "`triton-*` in the asset bucket": (f"arn:aws:s3:::{_ASSETS}/triton-*",),
        "the asset bucket": (f"arn:aws:s3:::{_ASSETS}",),
    },
)

DOCTOR: Final = Page(
    "account.md",
    "The doctor uses your AWS credentials and needs these permissions:\n",
    {
        "`/cdk-bootstrap/*`": (f"arn:aws:ssm{_REGION}parameter/cdk-bootstrap/*",),
        "the service-linked role": (
            "arn:aws:iam::123456789012:role/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint",
        ),
        "the repository `sagemaker-tritonserver` of SageMaker's account in the region": (
            "arn:aws:ecr:us-east-1:763104351884:repository/sagemaker-tritonserver",
        ),
        "the stacks of the app, those that use its store, and those that import its exports": _stacks("*"),
        "the endpoints that the app names but has not deployed yet": _of_sagemaker("endpoint"),
        "the rehearsals that passed, `artifacts/*/rehearsals/*` of every store of the region": (
            "arn:aws:s3:::*-bucket-*/artifacts/*/rehearsals/*",
        ),
        "`catalogue/*` of every store of the region": ("arn:aws:s3:::*-bucket-*/catalogue/*",),
        "the bucket of every store of the region": ("arn:aws:s3:::*-bucket-*",),
        **_KEY_OF_STORE,
    },
)
