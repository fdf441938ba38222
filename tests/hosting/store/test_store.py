"""`TritonArtifactStore`: the bucket, the handlers and what they may do."""

from __future__ import annotations

import json
import py_compile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from artifacts.locks import LEASE_SECONDS
from cdk_triton import TritonArtifactStore, TritonModel, TritonMultiModel
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.invocation import CALL_AGAIN

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


@pytest.fixture(name="store")
def _store(stack: cdk.Stack) -> TritonArtifactStore:
    return TritonArtifactStore(stack, "Store")


@pytest.fixture(name="byte_code")
def _byte_code() -> Iterator[Path]:
    """A file of byte code that an import left in the handlers' directory."""
    source = Path(__file__).parents[3] / "lambda" / "artifacts" / "locks.py"
    written = source.parent / "__pycache__" / "left.pyc"
    py_compile.compile(str(source), cfile=str(written), doraise=True)
    yield written
    written.unlink()


def test_only_sources_of_the_handlers_are_deployed(byte_code: Path, stack: cdk.Stack) -> None:
    TritonArtifactStore(stack, "Store")
    assembly = Path(cast(cdk.App, stack.node.root).synth().directory)
    handlers = next(path.parents[1] for path in assembly.glob("asset.*/artifacts/locks.py"))
    assert byte_code.exists()
    assert {path.suffix for path in handlers.rglob("*") if path.is_file()} == {".py"}
    assert not list(handlers.rglob("__pycache__"))


def test_a_checkout_without_links_has_no_handlers(
    messages: Messages, stack: cdk.Stack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "protocol").write_text("../constructs/cdk_triton/protocol")  # what git writes without core.symlinks
    monkeypatch.setattr("cdk_triton.hosting.store.provider.shipped_directory", lambda name: tmp_path)
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store")


def test_the_bucket_is_closed_kept_and_answers_tls_only(store: TritonArtifactStore, stack: cdk.Stack) -> None:
    template = Template.from_stack(stack)

    template.has_resource(
        "AWS::S3::Bucket",
        {
            "DeletionPolicy": "RetainExceptOnCreate",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                "PublicAccessBlockConfiguration": {
                    "BlockPublicAcls": True,
                    "BlockPublicPolicy": True,
                    "IgnorePublicAcls": True,
                    "RestrictPublicBuckets": True,
                },
                "VersioningConfiguration": {"Status": "Enabled"},
                "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                "BucketEncryption": Match.any_value(),
                "BucketName": Match.absent(),
            },
        },
    )
    template.has_resource_properties(
        "AWS::S3::BucketPolicy",
        {
            "PolicyDocument": {
                "Statement": [
                    {
                        "Action": "s3:*",
                        "Effect": "Deny",
                        "Principal": {"AWS": "*"},
                        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                        "Resource": Match.any_value(),
                    }
                ]
            }
        },
    )


def test_only_unfinished_uploads_replaced_versions_and_what_is_staged_expire(
    store: TritonArtifactStore, stack: cdk.Stack, world: World
) -> None:
    bucket = world.only(stack, "AWS::S3::Bucket")

    assert bucket["Properties"]["LifecycleConfiguration"]["Rules"] == [
        {
            "Id": "ExpireWhatNobodyRefersTo",
            "Status": "Enabled",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
        },
        {
            "Id": "ExpireWhatBuildsReadAndWrite",
            "Status": "Enabled",
            "Prefix": "staging/",
            "ExpirationInDays": 7,
            "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
        },
    ]


def test_a_handler_without_builders_may_do_exactly_this(
    stack: cdk.Stack, world: World, flattened: Callable[[Any], str]
) -> None:
    TritonArtifactStore(stack, "Store", builders=[])
    found = {
        (action, flattened(resource))
        for statement in world.statements(stack, "StoreIsCompleteRole")
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        for resource in (statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]])
    }
    bucket = next(iter(world.resources(stack, "AWS::S3::Bucket")))
    logs = next(iter(world.resources(stack, "AWS::Logs::LogGroup")))
    objects = [f"<{bucket}.Arn>/{top}/*" for top in ("artifacts", "fleets", "staging")]

    assert found == {
        ("logs:CreateLogStream", f"<{logs}.Arn>"),
        ("logs:PutLogEvents", f"<{logs}.Arn>"),
        ("sagemaker:DescribeEndpoint", "arn:<AWS::Partition>:sagemaker:<AWS::Region>:<AWS::AccountId>:endpoint/*"),
        (
            "cloudformation:DescribeStackResource",
            "arn:<AWS::Partition>:cloudformation:<AWS::Region>:<AWS::AccountId>:stack/*",
        ),
        (
            "cloudformation:DescribeStacks",
            "arn:<AWS::Partition>:cloudformation:<AWS::Region>:<AWS::AccountId>:stack/*",
        ),
        (
            "s3:GetObject",
            "arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}/triton-*",
        ),
        *(("s3:GetObject", o) for o in objects),
        ("s3:GetObject", f"<{bucket}.Arn>/catalogue/*"),  # what publishers wrote, which the stack must not name too
        *(("s3:PutObject", o) for o in objects),
        *(("s3:ListMultipartUploadParts", o) for o in objects),
        ("s3:ListBucket", f"<{bucket}.Arn>"),
        ("s3:ListBucketMultipartUploads", f"<{bucket}.Arn>"),
    }


def test_the_other_handler_may_only_log_and_start_the_waiter(
    store: TritonArtifactStore, stack: cdk.Stack, world: World
) -> None:
    log, start = world.statements(stack, "StoreProvideRole")
    (waiter,) = world.resources(stack, "AWS::StepFunctions::StateMachine")

    assert log["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
    assert (start["Action"], start["Resource"]) == ("states:StartExecution", {"Ref": waiter})


def test_nobody_gets_a_policy_of_aws_or_an_inline_one_or_a_wildcard_action(
    store: TritonArtifactStore, stack: cdk.Stack, world: World
) -> None:
    roles = world.resources(stack, "AWS::IAM::Role").values()
    actions = {
        action
        for policy in world.policies(stack).values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }

    assert not [role for role in roles if {"ManagedPolicyArns", "Policies"} & role["Properties"].keys()]
    assert world.resources(stack, "AWS::IAM::Policy") == {}
    assert not [action for action in actions if "*" in action]


def test_the_handlers_run_the_latest_python_and_log_where_logs_expire(
    store: TritonArtifactStore, stack: cdk.Stack, world: World
) -> None:
    functions = world.resources(stack, "AWS::Lambda::Function")
    handlers = {f["Properties"]["Handler"]: f["Properties"] for f in functions.values()}
    (log_group,) = world.resources(stack, "AWS::Logs::LogGroup")

    assert set(handlers) == {"artifacts.provide", "artifacts.is_complete"}
    assert {h["Runtime"] for h in handlers.values()} == {"python3.14"}
    assert {json.dumps(f["Properties"]["LoggingConfig"]["LogGroup"]) for f in functions.values()} == {
        json.dumps({"Ref": log_group})
    }
    assert world.only(stack, "AWS::Logs::LogGroup")["Properties"]["RetentionInDays"] == 90


def test_a_lease_on_a_build_outlives_the_handler_that_holds_it(
    store: TritonArtifactStore, stack: cdk.Stack, world: World
) -> None:
    functions = [f["Properties"] for f in world.resources(stack, "AWS::Lambda::Function").values()]
    (timeout,) = [f["Timeout"] for f in functions if f["Handler"] == "artifacts.is_complete"]
    assert timeout == 300
    assert timeout + 30 <= LEASE_SECONDS  # its last call may be on its way


def test_the_handler_is_asked_when_it_says_and_for_an_hour_while_lambda_does_not_run_it(
    store: TritonArtifactStore, stack: cdk.Stack, world: World, flattened: Callable[[Any], Any]
) -> None:
    machine = world.only(stack, "AWS::StepFunctions::StateMachine")["Properties"]["DefinitionString"]
    states = json.loads(flattened(machine))["States"]

    assert states["Wait"]["SecondsPath"] == "$.Polled.Seconds"
    for name in ("Poll", "Answer"):
        (retrier, *_) = states[name]["Retry"]
        assert {f"Lambda.{error}" for error in CALL_AGAIN} <= set(retrier["ErrorEquals"])
        assert retrier["MaxAttempts"] * retrier["MaxDelaySeconds"] > 55 * 60


def test_no_function_waits_for_another_one(store: TritonArtifactStore, stack: cdk.Stack, world: World) -> None:
    """Each would occupy an execution of the account, which has ten in the beginning."""
    callers = [
        name
        for name, policy in world.policies(stack).items()
        if "lambda:InvokeFunction" in json.dumps(policy["Properties"]["PolicyDocument"])
    ]

    assert [name for name in callers if not name.startswith("StoreWaiterRole")] == []


@pytest.mark.parametrize("prefix", ["apps/", "apps-", "apps/live-"])
def test_a_prefix_of_the_bootstrap_is_respected(prefix: str, world: World) -> None:
    synthesizer = cdk.DefaultStackSynthesizer(qualifier="team", bucket_prefix=prefix)
    stack = cdk.Stack(world.app(), "Stack", synthesizer=synthesizer)
    TritonArtifactStore(stack, "Store")

    assert "cdk-team-assets-${AWS::AccountId}-${AWS::Region}" in json.dumps(world.template(stack))
    assert f'"/{prefix}triton-*"' in json.dumps(world.template(stack))


def test_a_stack_with_other_assets_is_rejected(messages: Messages, world: World) -> None:
    app = world.app()
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    other = cdk.Stack(app, "Other", synthesizer=cdk.DefaultStackSynthesizer(qualifier="team"))

    with messages.raises(ConfigurationError) as caught:
        TritonModel(other, "Model", repository=world.repository(), platform=world.platform, store=store)
    assert "cdk-team-assets" in str(caught.value)


def test_a_stack_with_another_idea_of_its_environment_is_rejected(messages: Messages, world: World) -> None:
    app = world.app()
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    here = cdk.Stack(app, "Here", env=cdk.Environment(account="111122223333", region="us-east-1"))

    with messages.raises(ConfigurationError) as caught:
        TritonModel(here, "Model", repository=world.repository(), platform=world.platform, store=store)
    assert "env=" in str(caught.value)
    assert '{"' not in str(caught.value)


OWN_STORE = Match.string_like_regexp(r"\[ack: cdk-triton:ArtifactStoreInStack\]")


def test_without_a_store_a_stack_gets_one_and_is_told_why_not(
    messages: Messages, world: World, stack: cdk.Stack
) -> None:
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)

    assert len(world.resources(stack, "AWS::S3::Bucket")) == 1
    (warning,) = Annotations.from_stack(stack).find_warning("*", OWN_STORE)
    assert warning.id == "/Stack/TritonArtifacts"
    messages.record("cdk-triton:ArtifactStoreInStack", str(warning.entry.data))


def test_the_warning_about_the_store_can_be_acknowledged(world: World, stack: cdk.Stack) -> None:
    cdk.Annotations.of(stack).acknowledge_warning("cdk-triton:ArtifactStoreInStack", "a first try")
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)

    assert not Annotations.from_stack(stack).find_warning("*", OWN_STORE)


class TestTheBucketOfAFailedCreation:
    """CloudFormation can delete an empty bucket only, and that of a stack of its own is empty."""

    BUCKET = "AWS::S3::Bucket"

    def test_of_a_stack_of_its_own_goes(self, world: World) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Store")
        store = TritonArtifactStore(stack, "Store")
        TritonModel(
            cdk.Stack(app, "Stack"), "Model", repository=world.repository(), platform=world.platform, store=store
        )
        assert world.only(stack, self.BUCKET)["DeletionPolicy"] == "RetainExceptOnCreate"

    @pytest.mark.parametrize("where", ["default store", "same stack", "nested stack"])
    def test_of_the_stack_of_a_model_stays(self, world: World, stack: cdk.Stack, where: str) -> None:
        home = cdk.NestedStack(stack, "Nested") if where == "nested stack" else stack
        store = None if where == "default store" else TritonArtifactStore(home, "Store")
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
        assert world.only(home, self.BUCKET)["DeletionPolicy"] == "Retain"

    def test_is_what_removal_policy_says(self, world: World, stack: cdk.Stack) -> None:
        store = TritonArtifactStore(stack, "Store", removal_policy=cdk.RemovalPolicy.DESTROY)
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
        assert world.only(stack, self.BUCKET)["DeletionPolicy"] == "Delete"
        assert not world.resources(stack, "Custom::S3AutoDeleteObjects")

    def test_is_what_the_user_says(self, world: World, stack: cdk.Stack) -> None:
        store = TritonArtifactStore(stack, "Store")
        store.bucket.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
        assert world.only(stack, self.BUCKET)["DeletionPolicy"] == "Delete"


class TestAutoDeleteObjects:
    def test_the_cdk_empties_the_bucket_before_it_goes(self, stack: cdk.Stack, world: World) -> None:
        TritonArtifactStore(stack, "Store", removal_policy=cdk.RemovalPolicy.DESTROY, auto_delete_objects=True)

        bucket = next(iter(world.resources(stack, "AWS::S3::Bucket")))
        emptied = world.only(stack, "Custom::S3AutoDeleteObjects")
        assert emptied["Properties"]["BucketName"] == {"Ref": bucket}
        assert world.only(stack, "AWS::S3::Bucket")["DeletionPolicy"] == "Delete"

    @pytest.mark.parametrize("policy", [None, cdk.RemovalPolicy.RETAIN], ids=["default", "retain"])
    def test_a_bucket_that_stays_keeps_its_objects(
        self, messages: Messages, stack: cdk.Stack, policy: cdk.RemovalPolicy | None
    ) -> None:
        with pytest.raises(ConfigurationError) as caught:
            TritonArtifactStore(stack, "Store", removal_policy=policy, auto_delete_objects=True)
        messages.record("ConfigurationError", str(caught.value))

    def test_a_bucket_has_no_snapshots(self, messages: Messages, stack: cdk.Stack) -> None:
        with pytest.raises(ConfigurationError) as caught:
            TritonArtifactStore(stack, "Store", removal_policy=cdk.RemovalPolicy.SNAPSHOT)
        messages.record("ConfigurationError", str(caught.value))
