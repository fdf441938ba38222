"""What the handlers make of a plan that has something to build; the services are in memory (`build_model`)."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from artifacts.failure import PATIENCE_SECONDS, PROPAGATION_SECONDS
from artifacts.locks import LEASE_SECONDS
from build_model import Cloud, Fault, Poll, Published, Stack
from build_model.cloud import STORE, small_parts
from build_model.plans import ASSETS, OTHER
from memory_aws import refusal

ONE, TWO, WITH_AN_ASSET, PROCESSING = 0, 1, 2, 4
BOTH = pytest.mark.parametrize("plan", [TWO, PROCESSING], ids=["codebuild", "processing"])


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with small_parts():
        yield Cloud()


def deploy(cloud: Cloud, plan: int, stack: Stack | None = None) -> Stack:
    stack = stack or Stack(cloud)
    stack.deploy(cloud.plans[plan])
    return stack


def poll(stack: Stack, fault: Fault | None = None) -> Poll:
    assert stack.operation is not None
    result = stack.cloud.poll(stack.operation.event, fault)
    stack.cloud.tick(30)
    return result


def job(cloud: Cloud) -> str:
    (found,) = cloud.live_jobs()
    return found


@BOTH
def test_one_job_builds_what_is_locked_and_the_next_poll_commits_it(cloud: Cloud, plan: int) -> None:
    stack = deploy(cloud, plan)
    assert poll(stack) == Poll()
    assert poll(stack) == Poll()

    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(stack) == Poll(done=True)
    cloud.assert_delivered(cloud.plans[plan])
    assert len(cloud.states()) == 1


def test_a_second_deployment_of_the_same_plan_reads_only(cloud: Cloud) -> None:
    stack = deploy(cloud, TWO)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})
    poll(stack)
    cloud.calls.clear()

    assert poll(deploy(cloud, TWO)).done

    assert cloud.calls == {("s3", "GetObject"), ("s3", "HeadObject")}


def test_the_build_plan_names_what_was_locked(cloud: Cloud) -> None:
    poll(deploy(cloud, ONE))
    poll(deploy(cloud, TWO))

    first, second = (json.loads(text) for text in plans_written(cloud))

    assert [e["repository"] for e in first["ensembles"]] == ["text"]
    assert [e["repository"] for e in second["ensembles"]] == ["image"]  # text is being built already
    assert (first["schema"], first["deadline_seconds"]) == (1, 115 * 60)
    assert first["platform"] == cloud.plans[ONE].document["builder"]["platform"]
    assert first["ensembles"][0] == cloud.plans[ONE].builds[0]["build"]["ensemble"]
    assert first["build"] in cloud.live_jobs().values()


def plans_written(cloud: Cloud) -> list[bytes]:
    return [texts[-1] for (bucket, key), texts in cloud.s3.history.items() if key.endswith("/in/plan.json")]


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT"])
@BOTH
def test_any_end_without_archives_fails_the_deployment_at_once(cloud: Cloud, plan: int, status: str) -> None:
    stack = deploy(cloud, plan)
    poll(stack)
    cloud.end(job(cloud), status, {"text": "missing", "image": "missing"})

    failure = poll(stack).failure

    assert failure is not None
    assert failure.startswith("2 ensembles could not be built: text: the job ")
    assert "ended with status" in failure


@BOTH
def test_a_fault_of_the_service_is_tried_once_more(cloud: Cloud, plan: int) -> None:
    stack = deploy(cloud, plan)
    for _ in range(2):
        assert poll(stack) == Poll()
        cloud.end(job(cloud), "FAULT", {"text": "missing", "image": "missing"})

    assert poll(stack).failure is not None
    assert cloud.live_jobs() == {}


@BOTH
def test_a_job_that_vanished_is_started_once_more(cloud: Cloud, plan: int) -> None:
    stack = deploy(cloud, plan)
    for _ in range(2):
        poll(stack)
        cloud.vanish(job(cloud))
        assert poll(stack) == Poll()  # the service may not know it yet
        cloud.tick(300)

    failure = poll(stack).failure

    assert failure is not None
    assert "does not exist any more" in failure


@pytest.mark.parametrize("status", ["FAILED", "FAULT", "STOPPED", "TIMED_OUT"])
@BOTH
def test_finished_ensembles_are_committed_whatever_the_status(cloud: Cloud, plan: int, status: str) -> None:
    stack = deploy(cloud, plan)
    poll(stack)

    cloud.end(job(cloud), status, {})

    assert poll(stack) == Poll(done=True)


@pytest.mark.parametrize(
    ("plan", "link"),
    [
        (TWO, "https://console/the-project:1"),
        (
            PROCESSING,
            "https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#logsV2:log-groups/log-group/"
            "$252Faws$252Fsagemaker$252FProcessingJobs$3FlogStreamNameFilter$3Dcdk-triton-0000000000000001",
        ),
    ],
    ids=["codebuild", "processing"],
)
def test_one_that_failed_says_why_and_the_others_are_committed(cloud: Cloud, plan: int, link: str) -> None:
    stack = deploy(cloud, plan)
    poll(stack)
    cloud.end(job(cloud), "FAILED", {"text": "failed"})

    assert poll(stack).failure == f"text could not be built: trtexec failed [log: a line | the last] ({link})"

    image = next(commit for commit in cloud.plans[plan].builds if commit["repository"] == "image")
    assert cloud.read(image["manifest"]) is not None


def test_a_deployment_after_a_failure_builds_only_what_failed(cloud: Cloud) -> None:
    stack = deploy(cloud, TWO)
    poll(stack)
    cloud.end(job(cloud), "FAILED", {"text": "failed"})
    poll(stack)

    again = deploy(cloud, TWO)
    assert poll(again) == Poll()

    assert set(cloud.program.members(cloud.live_jobs()[job(cloud)]).values()) == {"text"}
    cloud.end(job(cloud), "SUCCEEDED", {})
    assert poll(again).done


def test_a_job_that_ended_before_any_work_says_why(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    build = cloud.live_jobs()[job(cloud)]
    reason = {"schema": 1, "reason": "the GPU is a Tesla T4, not an NVIDIA A10G", "log": []}
    cloud.s3.put(STORE, f"staging/{build}/out/failure.json", json.dumps(reason).encode())
    cloud.end(job(cloud), "FAILED", {"text": "missing"})

    failure = poll(stack).failure

    assert failure is not None
    assert failure.startswith("text could not be built: the GPU is a Tesla T4, not an NVIDIA A10G [log: building the ")
    assert failure.endswith("(https://console/the-project:1)")


@pytest.mark.parametrize("outcome", ["corrupt", "cut"])
def test_an_archive_that_is_not_what_its_report_says_is_not_committed(cloud: Cloud, outcome: str) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {"text": outcome})

    failure = poll(stack).failure

    assert failure is not None
    assert "build.json says" in failure
    assert cloud.s3.get(STORE, cloud.plans[ONE].builds[0]["archive"]) is None
    assert poll(deploy(cloud, ONE)) == Poll()  # builds it again
    assert len(cloud.live_jobs()) == 1


def test_a_deployment_that_timed_out_and_is_repeated_finds_its_build(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.tick(PATIENCE_SECONDS)
    failure = poll(stack).failure
    assert failure == (
        "not finished after 50 minutes (text is being built (https://console/the-project:1)); the build continues; "
        "deploy again to attach to it"
    )

    again = deploy(cloud, ONE)
    assert poll(again) == Poll()
    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(again).done
    assert len(cloud.states()) == 1


def test_a_build_that_failed_unseen_is_repeated_and_its_reason_kept(cloud: Cloud) -> None:
    poll(deploy(cloud, ONE))
    cloud.end(job(cloud), "FAILED", {"text": "failed"})
    cloud.tick(600)

    again = deploy(cloud, ONE)
    assert poll(again) == Poll()
    cloud.tick(PATIENCE_SECONDS)

    failure = poll(again).failure
    assert failure is not None
    assert "the build before it failed: trtexec failed" in failure


def test_stacks_that_share_a_key_share_its_build(cloud: Cloud) -> None:
    first, second = deploy(cloud, ONE), deploy(cloud, PROCESSING)
    poll(first)
    poll(second)
    assert {tuple(cloud.program.members(build).values()) for build in cloud.live_jobs().values()} == {
        ("text",),
        ("image",),
    }

    for live in list(cloud.live_jobs()):
        cloud.end(live, "SUCCEEDED", {})

    assert poll(first).done
    assert poll(second).done


@pytest.mark.parametrize("kind", ["crash after", "limbo", "lost", "asked twice", "slow"])
@pytest.mark.usefixtures("cloud")
def test_a_fault_at_any_call_is_mended_by_later_polls(kind: str) -> None:
    for number in range(0, 80, 2):
        world = Cloud()
        stack, fault = deploy(world, TWO), Fault(kind, number)
        poll(stack, fault)
        while not any(state["job"] for state in world.states()):
            assert poll(stack) == Poll()  # a killed one holds the lease for some minutes
        world.end(job(world), "SUCCEEDED", {})
        assert poll(stack).done
        world.assert_delivered(world.plans[TWO])
        if fault.seen <= number:
            break
    assert number > 15


def test_a_commit_goes_on_where_the_last_poll_stopped(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})

    assert poll(stack, Fault("slow", 11)) == Poll()  # two of its parts are copied
    cloud.calls.clear()
    assert poll(stack).done

    assert ("s3", "ListParts") in cloud.calls
    assert ("s3", "CreateMultipartUpload") not in cloud.calls


def test_the_archive_of_another_committer_is_adopted_with_its_report(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})
    (commit,) = cloud.plans[ONE].builds
    for number in range(100):
        if cloud.s3.get(STORE, commit["archive"]) is not None:
            break
        poll(stack, Fault("crash after", number))
    assert cloud.s3.get(STORE, commit["archive"]) is not None
    assert cloud.read(commit["manifest"]) is None

    assert poll(stack).done

    cloud.assert_delivered(cloud.plans[ONE])
    manifest = cloud.read(commit["manifest"])
    assert manifest is not None
    assert manifest["build"]["build"] == cloud.states()[0]["build"]


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

    def test_a_poll_that_died_holds_its_build_until_it_is_surely_gone(self, cloud: Cloud) -> None:
        stack = deploy(cloud, ONE)
        poll(stack, Fault("crash before", 0, jobs=True))
        cloud.calls.clear()
        assert poll(stack) == Poll()
        assert ("codebuild", "StartBuild") not in cloud.calls

        cloud.tick(LEASE_SECONDS)

        assert poll(stack) == Poll()
        assert len(cloud.live_jobs()) == 1

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
            "sourceLocationOverride": f"the-store/staging/{name}/in/",
            "artifactsOverride": {
                "type": "S3",
                "location": "the-store",
                "path": f"staging/{name}",
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
        assert request["ProcessingInputs"][0]["S3Input"]["S3Uri"] == f"s3://the-store/staging/{name}/in"
        assert request["ProcessingOutputConfig"]["Outputs"][0]["S3Output"] == {
            "S3Uri": f"s3://the-store/staging/{name}/out",
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

    @pytest.mark.parametrize(
        ("plan", "quota"),
        [
            (TWO, "(L-F1FE1B52), which is 0 in many accounts; have it raised in Service Quotas"),
            (PROCESSING, "The quota is 'ml.g5.2xlarge for processing job usage' of Amazon SageMaker"),
        ],
        ids=["codebuild", "processing"],
    )
    def test_a_quota_is_named_and_the_next_deployment_starts(self, cloud: Cloud, plan: int, quota: str) -> None:
        cloud.codebuild.room = cloud.processing.room = 0
        failure = poll(deploy(cloud, plan)).failure
        assert failure is not None
        assert quota in failure

        cloud.codebuild.room = cloud.processing.room = 1
        assert poll(deploy(cloud, plan)) == Poll()
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
        self, cloud: Cloud, error: Exception
    ) -> None:
        cloud.codebuild.refusals = [error] * 100
        stack = deploy(cloud, ONE)
        for _ in range(PROPAGATION_SECONDS // 30):
            assert poll(stack) == Poll()

        failure = poll(stack).failure

        assert failure is not None
        assert "the build could not be started: ClientError" in failure

    def test_throttling_ends_with_the_patience(self, cloud: Cloud) -> None:
        cloud.codebuild.refusals = [refusal("ThrottlingException", "Rate exceeded")] * 200
        stack = deploy(cloud, ONE)
        results = [poll(stack) for _ in range(PATIENCE_SECONDS // 30 + 2)]

        assert results[:-1] == [Poll()] * (len(results) - 1)
        failure = results[-1].failure
        assert failure is not None
        assert "not finished after 50 minutes (ClientError: " in failure
        assert "Rate exceeded" in failure

    def test_a_lost_answer_finds_the_job_and_starts_no_other(self, cloud: Cloud) -> None:
        stack = deploy(cloud, ONE)
        cloud.codebuild.after_start = [ReadTimeoutError(endpoint_url="codebuild")]

        assert poll(stack) == Poll()
        cloud.tick(400)  # the token is forgotten by now
        assert poll(stack) == Poll()

        assert len(cloud.live_jobs()) == 1
        cloud.end(job(cloud), "SUCCEEDED", {})
        assert poll(stack).done

    def test_a_project_that_is_gone_says_which_stack_to_update(self, cloud: Cloud) -> None:
        cloud.codebuild.refusals = [refusal("ResourceNotFoundException", "Project cannot be found")]

        failure = poll(deploy(cloud, ONE)).failure

        assert failure is not None
        assert "cannot find the project the-project" in failure
        assert "update the stack of the artifact store" in failure


class TestInputs:
    def test_a_missing_input_is_named(self, cloud: Cloud) -> None:
        cloud.s3.expire(OTHER, "bert.onnx")

        assert poll(deploy(cloud, ONE)).failure == (
            f"the input s3://{OTHER}/bert.onnx of the build is missing; restore it, and deploy again"
        )

    def test_another_content_than_the_recipe_says_is_refused_and_mended_by_restoring_it(self, cloud: Cloud) -> None:
        onnx = cloud.s3.get(OTHER, "bert.onnx")
        assert onnx is not None
        cloud.s3.put(OTHER, "bert.onnx", b"another one")
        failure = poll(deploy(cloud, ONE)).failure
        assert failure is not None
        assert "as the recipe says: correct the recipe's S3File or restore the object, and deploy again" in failure
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


def published(cloud: Cloud, document: Any) -> Published:
    """A plan that was changed by hand."""
    text = json.dumps(document).encode()
    sha256 = hashlib.sha256(text).hexdigest()
    cloud.s3.put(ASSETS, "plan.json", text)
    image = cloud.plans[ONE].properties["BuildImage"]
    return Published(
        {"PlanBucket": ASSETS, "PlanKey": "plan.json", "PlanSha256": sha256, "BuildImage": image}, document
    )


def test_a_plan_without_an_image_says_so(cloud: Cloud) -> None:
    stack = deploy(cloud, ONE)
    assert stack.operation is not None
    del stack.operation.event["ResourceProperties"]["BuildImage"]

    failure = poll(stack).failure

    assert failure is not None
    assert "the property BuildImage is missing" in failure


def test_a_store_without_the_builder_says_which_stack_to_deploy(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("build_model.cloud.SETTINGS", {"codebuild": None, "processing": None})

    assert poll(deploy(cloud, ONE)).failure == (
        "this artifact store has no builder 'codebuild'; deploy the stack of the artifact store first, with the "
        "builder that the model's stack names"
    )
