"""How builds are started and taken over, and what they are given; the services are in memory (`build_model`)."""

from __future__ import annotations

import hashlib
import json
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError

from artifacts.failure import PATIENCE_SECONDS, PROPAGATION_SECONDS
from artifacts.locks import ABANDONED_SECONDS, LEASE_SECONDS
from artifacts.starting import QUOTA_SECONDS
from build_model import Cloud, Fault, Poll, Published, Stack
from build_model.cloud import SETTINGS
from build_model.plans import ASSETS, OTHER
from build_model.steps import ONE, PROCESSING, TWO, WITH_AN_ASSET, deploy, job, poll
from cdk_triton.protocol import layout
from memory_aws import refusal

if TYPE_CHECKING:
    from golden_messages import Messages


class TestTakingOver:
    """The request behind a build that was about to start is gone; another one wants a key of it."""

    @pytest.mark.parametrize("kind", ["crash before", "crash after"])
    def test_what_was_not_started_is_built_by_others_and_what_was_is_found(self, cloud: Cloud, kind: str) -> None:
        poll(deploy(cloud, ONE), Fault(kind, 0, jobs=True))
        other = deploy(cloud, PROCESSING)
        assert poll(other) == Poll()
        cloud.tick(700)

        for _ in range(4):
            assert poll(other) == Poll()

        jobs = cloud.live_jobs()
        keys = [key for build in jobs.values() for key in cloud.program.members(build)]
        assert len(keys) == len(set(keys)) == 2
        assert ("the-project:1" in jobs) == (kind == "crash after")
        for live in list(jobs):
            cloud.end(live, "SUCCEEDED", {})
        assert poll(other).done

    def test_a_fault_while_its_job_is_looked_for_does_not_hold_it(self, cloud: Cloud) -> None:
        poll(deploy(cloud, ONE), Fault("crash before", 0, jobs=True))
        other = deploy(cloud, TWO)
        cloud.tick(700)

        assert poll(other, Fault("throttled", 0, jobs=True)) == Poll()
        assert poll(other) == Poll()

        assert len(cloud.live_jobs()) == 1

    def test_a_poll_that_died_holds_its_build_until_it_is_surely_gone(self, cloud: Cloud) -> None:
        stack = deploy(cloud, ONE)
        poll(stack, Fault("crash before", 0, jobs=True))
        cloud.calls.clear()
        assert poll(stack) == Poll()
        assert ("codebuild", "StartBuild") not in cloud.calls

        cloud.tick(LEASE_SECONDS)

        assert poll(stack) == Poll()
        assert len(cloud.live_jobs()) == 1

    def test_others_leave_a_build_alone_until_it_is_surely_abandoned(self, cloud: Cloud) -> None:
        poll(deploy(cloud, ONE), Fault("crash before", 0, jobs=True))
        other = deploy(cloud, PROCESSING)
        cloud.tick(LEASE_SECONDS)

        assert poll(other) == Poll()
        (state,) = cloud.states()
        assert state["ended"] is None

        cloud.tick(ABANDONED_SECONDS)

        assert poll(other) == Poll()
        assert cloud.states()[0]["ended"]["status"] == "ABANDONED"

    @pytest.mark.parametrize("seed", range(6))
    def test_two_polls_of_one_event_start_one_job(self, cloud: Cloud, seed: int) -> None:
        stack = deploy(cloud, TWO)
        assert stack.operation is not None
        ask = partial(cloud.poll, stack.operation.event)
        order = random.Random(seed)

        cloud.together([ask, ask], iter(lambda: order.randint(0, 1), None))
        poll(stack)

        assert len(cloud.live_jobs()) == 1


class TestStarting:
    def test_codebuild_is_asked_for_exactly_this(self, cloud: Cloud) -> None:
        poll(deploy(cloud, ONE))

        (build,) = cloud.codebuild.requests()
        name = build["idempotencyToken"]
        assert build == {
            "projectName": "the-project",
            "idempotencyToken": name,
            "sourceTypeOverride": "S3",
            "sourceLocationOverride": f"the-store/{layout.build_inputs_prefix(name)}",
            "artifactsOverride": {
                "type": "S3",
                "location": "the-store",
                "path": layout.build_prefix(name).rstrip("/"),
                "name": "out",
                "namespaceType": "NONE",
                "packaging": "NONE",
            },
            "imageOverride": cloud.plans[ONE].properties["BuildImage"],
            "imagePullCredentialsTypeOverride": "SERVICE_ROLE",
            "timeoutInMinutesOverride": 120,
        }

    def test_processing_is_asked_for_exactly_this(self, cloud: Cloud) -> None:
        poll(deploy(cloud, PROCESSING))

        (request,) = cloud.processing.requests()
        name = request["ProcessingJobName"]
        assert request["AppSpecification"] == {
            "ImageUri": cloud.plans[PROCESSING].properties["BuildImage"],
            "ContainerEntrypoint": [
                "python3",
                "/opt/ml/processing/input/program.pyz",
                "/opt/ml/processing/input",
                "/opt/ml/processing/output",
            ],
        }
        assert request["ProcessingInputs"][0]["S3Input"][
            "S3Uri"
        ] == f"s3://the-store/{layout.build_inputs_prefix(name)}".rstrip("/")
        assert request["ProcessingOutputConfig"]["Outputs"][0]["S3Output"] == {
            "S3Uri": f"s3://the-store/{layout.build_outputs_prefix(name)}".rstrip("/"),
            "LocalPath": "/opt/ml/processing/output",
            "S3UploadMode": "Continuous",
        }
        assert request["ProcessingResources"]["ClusterConfig"] == {
            "InstanceCount": 1,
            "InstanceType": "ml.g5.2xlarge",
            "VolumeSizeInGB": 100,
        }
        assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 7200}
        assert request["NetworkConfig"] == {"VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}}

    @pytest.mark.parametrize("key", [None, "arn:aws:kms:us-east-1:123456789012:key/1"], ids=["none", "own"])
    def test_what_processing_writes_is_encrypted_with_the_key_of_the_store(
        self, cloud: Cloud, key: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = SETTINGS["processing"] | {"kms_key": key}
        monkeypatch.setattr("build_model.cloud.SETTINGS", SETTINGS | {"processing": settings})

        poll(deploy(cloud, PROCESSING))

        (request,) = cloud.processing.requests()
        assert request["ProcessingOutputConfig"].get("KmsKeyId") == key

    @pytest.mark.parametrize(("families", "used"), [(["ml.p3"], None), (["ml.g5"], "a-key")], ids=["disk", "volume"])
    def test_the_volume_gets_the_key_in_the_families_that_take_one(
        self, cloud: Cloud, families: list[str], used: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = SETTINGS["processing"] | {"kms_key": "a-key", "volume_key_families": families}
        monkeypatch.setattr("build_model.cloud.SETTINGS", SETTINGS | {"processing": settings})

        poll(deploy(cloud, PROCESSING))

        (request,) = cloud.processing.requests()
        assert request["ProcessingResources"]["ClusterConfig"].get("VolumeKmsKeyId") == used

    def test_a_job_gets_the_tags_of_the_bucket_but_those_of_aws(self, cloud: Cloud) -> None:
        cloud.s3.tags = {"aws:cloudformation:stack-name": "Artifacts", "cost-centre": "42"}

        poll(deploy(cloud, PROCESSING))

        (request,) = cloud.processing.requests()
        assert request["Tags"] == [{"Key": "cost-centre", "Value": "42"}]

    def test_a_bucket_without_tags_gives_none(self, cloud: Cloud) -> None:
        poll(deploy(cloud, PROCESSING))

        (request,) = cloud.processing.requests()
        assert "Tags" not in request

    @pytest.mark.parametrize(
        ("plan", "quota"),
        [
            (TWO, "L-F1FE1B52"),
            (PROCESSING, "'ml.g5.2xlarge for processing job usage'"),
        ],
        ids=["codebuild", "processing"],
    )
    def test_a_quota_is_named_and_the_next_deployment_starts(
        self, messages: Messages, cloud: Cloud, plan: int, quota: str
    ) -> None:
        cloud.codebuild.room = cloud.processing.room = 0
        failure = poll(deploy(cloud, plan)).failure
        assert failure is not None
        assert quota in failure
        messages.record("ArtifactError", failure)

        cloud.codebuild.room = cloud.processing.room = 1
        assert poll(deploy(cloud, plan)) == Poll()
        assert len(cloud.live_jobs()) == 1

    @pytest.mark.parametrize("kind", ["codebuild", "processing"])
    def test_a_quota_that_others_use_up_is_waited_for(self, cloud: Cloud, kind: str) -> None:
        plans = [published(cloud, plan) for plan in apart(cloud.plans[PROCESSING if kind == "processing" else TWO])]
        cloud.codebuild.room = cloud.processing.room = 1
        first, other = Stack(cloud), Stack(cloud)
        for stack, plan in zip((first, other), plans, strict=True):
            stack.deploy(plan)
        assert poll(first) == Poll()
        assert [poll(other) for _ in range(3)] == [Poll()] * 3
        assert len(cloud.jobs()) == 1

        cloud.end(job(cloud), "SUCCEEDED", {})
        assert poll(other) == Poll()
        assert len(cloud.jobs()) == 2
        assert len(cloud.live_jobs()) == 1

    def test_a_quota_that_others_use_up_for_hours_fails(self, messages: Messages, cloud: Cloud) -> None:
        cloud.codebuild.refusals = [refusal("AccountLimitExceededException", "Cannot have more than 1 builds")] * 2
        stack = deploy(cloud, ONE)
        assert poll(stack) == Poll()
        cloud.tick(QUOTA_SECONDS)

        failure = poll(stack).failure

        assert failure is not None
        messages.record("ArtifactError", failure)
        assert {state["state"] for state in cloud.states()} == {"ended"}

    def test_a_second_request_waits_for_the_quota_as_long_as_the_first(self, cloud: Cloud) -> None:
        cloud.codebuild.refusals = [refusal("AccountLimitExceededException", "Cannot have more than 1 builds")] * 2
        assert poll(deploy(cloud, ONE)) == Poll()
        cloud.tick(QUOTA_SECONDS + 1)

        again = deploy(cloud, ONE)

        assert [poll(again), poll(again)] == [Poll(), Poll()]
        assert len(cloud.live_jobs()) == 1

    @pytest.mark.parametrize(
        "error",
        [
            refusal("AccessDeniedException", "not authorized to perform: codebuild:StartBuild"),
            refusal("InvalidInputException", "CodeBuild is not authorized to perform: sts:AssumeRole on the role"),
        ],
        ids=["call", "role"],
    )
    def test_a_policy_that_is_not_there_yet_is_waited_for_but_not_for_ever(
        self, messages: Messages, cloud: Cloud, error: Exception
    ) -> None:
        cloud.codebuild.refusals = [error] * 100
        stack = deploy(cloud, ONE)
        for _ in range(PROPAGATION_SECONDS // 30):
            assert poll(stack) == Poll()

        failure = poll(stack).failure

        assert failure is not None
        messages.record("ArtifactError", failure)

    def test_throttling_ends_with_the_patience(self, messages: Messages, cloud: Cloud) -> None:
        cloud.codebuild.refusals = [refusal("ThrottlingException", "Rate exceeded")] * 200
        stack = deploy(cloud, ONE)
        results = [poll(stack) for _ in range(PATIENCE_SECONDS // 30 + 2)]

        assert results[:-1] == [Poll()] * (len(results) - 1)
        failure = results[-1].failure
        assert failure is not None
        assert "Rate exceeded" in failure
        messages.record("ArtifactError", failure)

    def test_a_lost_answer_finds_the_job_and_starts_no_other(self, cloud: Cloud) -> None:
        stack = deploy(cloud, ONE)
        cloud.codebuild.after_start = [ReadTimeoutError(endpoint_url="codebuild")]

        assert poll(stack) == Poll()
        cloud.tick(400)  # the token is forgotten by now
        assert poll(stack) == Poll()

        assert len(cloud.live_jobs()) == 1
        cloud.end(job(cloud), "SUCCEEDED", {})
        assert poll(stack).done

    def test_a_project_that_is_gone_says_which_stack_to_update(self, messages: Messages, cloud: Cloud) -> None:
        cloud.codebuild.refusals = [refusal("ResourceNotFoundException", "Project cannot be found")]

        failure = poll(deploy(cloud, ONE)).failure

        assert failure is not None
        messages.record("ArtifactError", failure)


class TestInputs:
    def test_a_missing_input_is_named(self, messages: Messages, cloud: Cloud) -> None:
        cloud.s3.expire(OTHER, "bert.onnx")

        failure = poll(deploy(cloud, ONE)).failure

        assert failure is not None
        assert f"s3://{OTHER}/bert.onnx" in failure
        messages.record("ArtifactError", failure)

    def test_a_deployment_with_one_missing_input_starts_nothing(self, cloud: Cloud) -> None:
        sources = cloud.plans[TWO].builds[0]["build"]["inputs"][0]["key"]
        cloud.s3.expire(ASSETS, sources)

        failure = poll(deploy(cloud, TWO)).failure

        assert failure is not None
        assert sources in failure
        assert not cloud.jobs()

    def test_another_content_than_the_recipe_says_is_rejected_and_mended_by_restoring_it(
        self, messages: Messages, cloud: Cloud
    ) -> None:
        onnx = cloud.s3.get(OTHER, "bert.onnx")
        assert onnx is not None
        cloud.s3.put(OTHER, "bert.onnx", b"another one")
        failure = poll(deploy(cloud, ONE)).failure
        assert failure is not None
        messages.record("ArtifactError", failure)
        assert cloud.live_jobs() == {}

        cloud.s3.put(OTHER, "bert.onnx", onnx)
        assert poll(deploy(cloud, ONE)) == Poll()
        assert len(cloud.live_jobs()) == 1

    def test_a_job_starts_only_when_everything_is_there(self, cloud: Cloud) -> None:
        stack = deploy(cloud, WITH_AN_ASSET)
        for number in range(4, 12):
            poll(stack, Fault("slow", number))
        poll(stack)
        assert cloud.program.incomplete == []

    def test_one_content_under_two_names_is_built_once(self, cloud: Cloud) -> None:
        document = json.loads(json.dumps(cloud.plans[ONE].document))
        twin = json.loads(json.dumps(document["commits"][0]))
        for name in ("archive", "manifest"):
            twin[name] = twin[name].replace("/text/", "/twin/")
        document["commits"].append(twin | {"repository": "twin"})
        stack = Stack(cloud)
        stack.deploy(published(cloud, document))

        assert poll(stack) == Poll()
        cloud.end(job(cloud), "SUCCEEDED", {})

        assert poll(stack).done
        cloud.assert_delivered(stack.past[0].plan)


def apart(plan: Published) -> list[Any]:
    """A plan for each archive that is built."""
    return [plan.document | {"commits": [commit], "fleet": None} for commit in plan.builds]


def published(cloud: Cloud, document: Any) -> Published:
    """A plan that was changed by hand."""
    text = json.dumps(document).encode()
    sha256 = hashlib.sha256(text).hexdigest()
    key = f"plan-{sha256}.json"
    cloud.s3.put(ASSETS, key, text)
    image = cloud.plans[ONE].properties["BuildImage"]
    return Published({"PlanBucket": ASSETS, "PlanKey": key, "PlanSha256": sha256, "BuildImage": image}, document)


def test_a_plan_without_an_image_says_so(messages: Messages, cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    assert stack.operation is not None
    del stack.operation.event["ResourceProperties"]["BuildImage"]

    failure = poll(stack).failure

    assert failure is not None
    messages.record("ArtifactError", failure)


def test_a_store_without_the_builder_says_which_stack_to_deploy(
    messages: Messages, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("build_model.cloud.SETTINGS", {"codebuild": None, "processing": None})

    failure = poll(deploy(cloud, ONE)).failure

    assert failure is not None
    messages.record("ArtifactError", failure)


def test_a_build_on_a_builder_that_the_store_has_lost_is_named_and_built_again_after_its_time(
    messages: Messages, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll(deploy(cloud, PROCESSING))
    monkeypatch.setattr("build_model.cloud.SETTINGS", SETTINGS | {"processing": None})
    stack = deploy(cloud, TWO)  # the same archives

    failure = poll(stack).failure

    assert failure is not None
    messages.record("ArtifactError", failure)
    assert len(cloud.jobs()) == 1

    cloud.tick(12 * 60 * 60)
    assert poll(deploy(cloud, TWO)) == Poll()
    assert len(cloud.codebuild.live()) == 1
