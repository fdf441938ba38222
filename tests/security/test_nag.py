"""What cdk-nag finds in the examples: nothing in two packs, and in the others what its page says.

`make generate` rewrites the tables of that page: read the diff.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from tests.hosting.conftest import ROOT, World
from tests.recorded import assert_recorded
from tests.security.everything import some_vpc
from tests.security.examples import EXAMPLES

from cdk_triton import TritonArtifactStore

PAGE = ROOT / "docs" / "cdk_nag.md"
CLEAN = {"AwsSolutions": cdk_nag.AwsSolutionsChecks, "NIST 800-53 R5": cdk_nag.NIST80053R5Checks}
REPORTED = {
    "HIPAA": cdk_nag.HIPAASecurityChecks,
    "PCI DSS": cdk_nag.PCIDSS321Checks,
    "Serverless": cdk_nag.ServerlessChecks,
}


@pytest.fixture(name="apps", scope="module")
def _apps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, cdk.App]:
    return synthesised(tmp_path_factory.mktemp("nag"))


@pytest.fixture(name="unexcused", scope="module")
def _unexcused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, cdk.App]:
    """The same apps, where nobody acknowledges anything."""
    with pytest.MonkeyPatch.context() as during:
        during.setattr(cdk.Validations, "acknowledge", lambda *_: None)
        return synthesised(tmp_path_factory.mktemp("unexcused"))


def synthesised(directory: Path) -> dict[str, cdk.App]:
    apps = {}
    for number, (name, make) in enumerate(EXAMPLES.items()):
        (directory / str(number)).mkdir()
        apps[name] = make(World(directory / str(number)))
        apps[name].synth()  # only then references to other stacks are what the templates say
    return apps


def stacks(app: cdk.App) -> list[cdk.Stack]:
    return [each for each in app.node.find_all() if isinstance(each, cdk.Stack)]


def findings(app: cdk.App, pack: Any) -> dict[str, list[str]]:
    """Rule, as it has to be acknowledged, to the paths of the resources."""
    found: dict[str, list[str]] = defaultdict(list)
    for stack in stacks(app):
        for violation in pack().validate_scope(stack).violations or []:
            found[bare(violation.rule_name)] += [str(each.construct_path) for each in violation.violating_resources]
    return dict(found)


def acknowledged(app: cdk.App) -> set[tuple[str, str]]:
    """Rules with their reasons."""
    return {
        (bare(str(rule)), str(reason))
        for construct in app.node.find_all()
        for entry in construct.node.metadata
        if entry.type == cdk.Validations.ACKNOWLEDGED_RULES_METADATA_KEY
        for rule, reason in dict(entry.data).items()
    }


def bare(rule: str) -> str:
    """A rule as cdk-nag calls it, without what CDK puts before it."""
    return re.sub(r"^(AwsSolutions|Annotation)::", "", rule)


@pytest.mark.parametrize("pack", CLEAN)
@pytest.mark.parametrize("example", EXAMPLES)
def test_two_packs_find_nothing(apps: dict[str, cdk.App], example: str, pack: str) -> None:
    assert findings(apps[example], CLEAN[pack]) == {}


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_is_acknowledged_is_found_where_nobody_acknowledges(
    apps: dict[str, cdk.App], unexcused: dict[str, cdk.App], example: str
) -> None:
    clean = {rule for pack in CLEAN.values() for rule in findings(unexcused[example], pack)}
    others = {rule for pack in REPORTED.values() for rule in findings(unexcused[example], pack)}

    excused = {rule for rule, _ in acknowledged(apps[example])}
    assert clean <= excused <= clean | others


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_acknowledgement_has_a_reason(apps: dict[str, cdk.App], example: str) -> None:
    assert all(len(reason) > 40 and reason.endswith(".") for _, reason in acknowledged(apps[example]))


@pytest.mark.parametrize("pack", CLEAN)
def test_a_store_that_empties_its_bucket_is_clean(stack: cdk.Stack, pack: str) -> None:
    TritonArtifactStore(
        stack,
        "Store",
        removal_policy=cdk.RemovalPolicy.DESTROY,
        auto_delete_objects=True,
        access_logs_bucket=s3.Bucket.from_bucket_name(stack, "Logs", "access-logs"),
        encryption_key=kms.Key(stack, "Key", enable_key_rotation=True),
        builders=[],
        vpc=some_vpc(stack),
    )

    assert findings(cast(cdk.App, stack.node.root), CLEAN[pack]) == {}


def test_the_packs_as_plugins_let_the_synthesis_pass(tmp_path: Path) -> None:
    app = EXAMPLES["`app.py`"](World(tmp_path))
    cdk.Validations.of(app).add_plugins(*(pack(app) for pack in CLEAN.values()))

    app.synth()


def test_the_page_lists_what_is_acknowledged(apps: dict[str, cdk.App]) -> None:
    rows: dict[tuple[str, str], set[str]] = defaultdict(set)
    for example, app in apps.items():
        for rule, reason in acknowledged(app):
            rows[readable(rule), reason].add(example)
    lines = [f"| `{rule}` | {listed(examples)} | {reason} |" for (rule, reason), examples in sorted(rows.items())]

    assert_on_page("Acknowledged", ["| finding | in | reason |", "|---|---|---|", *lines])


def test_the_page_lists_what_other_packs_report(apps: dict[str, cdk.App]) -> None:
    rows: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for pack, checks in REPORTED.items():
        for example, app in apps.items():
            for rule in findings(app, checks):
                rows[rule.split("-", maxsplit=1)[1]]["by"].add(pack)
                rows[rule.split("-", maxsplit=1)[1]]["in"].add(example)
    lines = [f"| `{rule}` | {listed(row['in'])} | {listed(row['by'])} |" for rule, row in sorted(rows.items())]

    assert_on_page("Reported", ["| rule | in | by |", "|---|---|---|", *lines])


def readable(rule: str) -> str:
    """Without hashes, whoever exports a bucket's ARN, and wherever an app is deployed to."""
    for pattern, replacement in {
        r"[\w-]+:ExportsOutputFnGetAtt(\w+?)[0-9A-F]{8}Arn[0-9A-F]{8}": r"<\1.Arn>",
        r"(?<=[a-z])[0-9A-F]{8}(?=\.)": "",
        r"/(fleets|catalogue|staging/publish|staging/publishing)/[\w-]+/": r"/\1/<fleet>/",
        r"<\w+\.EndpointName>": "<endpoint>",
        r"(?<=/InferenceComponents/)[\w-]+\{.*\}(?=:)": "<component>",
        r"arn:aws:": "arn:<AWS::Partition>:",
        r"eu-west-1|us-east-1": "<AWS::Region>",
        r"111122223333|222222222222|333333333333": "<AWS::AccountId>",
    }.items():
        rule = re.sub(pattern, replacement, rule)
    return rule


def listed(names: set[str]) -> str:
    return ", ".join(sorted(names))


def assert_on_page(heading: str, table: list[str]) -> None:
    """The table below a heading of the page is this one."""

    def with_table(page: str) -> str:
        before, mark, rest = page.partition(f"## {heading}\n")
        assert mark, f"there is no heading {heading}"
        old = next(block for block in rest.split("\n\n") if block.startswith("|")).rstrip("\n")
        return before + mark + rest.replace(old, "\n".join(table), 1)

    assert_recorded(PAGE, with_table)


def test_a_function_that_a_user_adds_to_a_store_is_not_excused(stack: cdk.Stack) -> None:
    store = TritonArtifactStore(stack, "Store")
    code = lambda_.Code.from_inline("def handler(*_): ...")
    lambda_.Function(store, "Own", runtime=lambda_.Runtime.PYTHON_3_14, handler="index.handler", code=code)

    report = cdk_nag.NIST80053R5Checks().validate_scope(stack)
    found = {bare(v.rule_name): [r.construct_path for r in v.violating_resources] for v in report.violations or []}
    assert found["NIST.800.53.R5-LambdaDLQ"] == ["Stack/Store/Own/Resource"]
