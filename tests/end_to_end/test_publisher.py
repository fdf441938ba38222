"""A publisher on the local AWS: the command, the synthesised machine in moto's interpreter, the real functions."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import EndpointConnectionError
from tests.cli.conftest import PROGRAM, run
from tests.docs.blocks import of_kind
from tests.end_to_end.publisher_account import (
    CONFIG,
    FLEET,
    PLATFORM,
    Account,
    Run,
    account,
    administrator,
    deployed,
)

from cdk_triton import ModelRepository
from cdk_triton.artifacts import artifact_key
from cdk_triton.artifacts.prepare import prepared_document
from cdk_triton.cli.fleet import place, publishing, verdicts
from cdk_triton.cli.fleet.catalogue import Catalogue
from cdk_triton.cli.fleet.execution import follow
from cdk_triton.cli.fleet.uploads import upload
from cdk_triton.cli.progress import Progress
from cdk_triton.protocol import layout

if TYPE_CHECKING:
    from golden_messages import Messages

__all__ = ["account", "administrator", "deployed", "run"]


def test_ensembles_are_published_rolled_back_and_unpublished_without_a_deployment(account: Account, run: Run) -> None:
    names = [f"tenant-{number}" for number in range(3)]
    for name in names:
        tenants = account.write(name, f"# first {name}")
    first = {name: account.target(name) for name in names}
    (commands,) = of_kind("end_to_end/test_publisher.py")  # of docs/publishing.md: publish and list
    path = os.pathsep.join([str(PROGRAM.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-ec", commands.text], cwd=tenants.parent, env=os.environ | {"PATH": path}, stdout=subprocess.PIPE
    )
    said = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert said[-5] == "3 published"
    assert [line.split()[:2] for line in said[-3:]] == [[name, first[name]] for name in names]
    assert account.current() == first
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)
    head = account.s3.head_object(Bucket=account.bucket, Key=served + first["tenant-1"])
    key = artifact_key(ModelRepository.from_directory(tenants / names[1]), PLATFORM)
    assert head["Metadata"]["artifact-key"] == key

    again = run("fleet", "publish", tenants, *FLEET)
    assert (again.status, again.out) == (0, "0 published, 3 unchanged\n")
    assert len(account.executions()) == 1

    account.write("tenant-0", "# second")
    account.write("tenant-1", "# second", config="max_batch_siz: 1")
    found = run("fleet", "publish", tenants, *FLEET)
    assert found.status == 1
    assert "rejected tenant-1: model/config.pbtxt:1:1: error CT101" in found.out
    assert "    more about a rule: cdk-triton explain CT101" in found.out.splitlines()
    assert found.out.splitlines()[-1] == "1 published, 1 unchanged, 1 rejected by the checks"
    changed = account.target("tenant-0")
    assert account.current() == {**first, "tenant-0": changed}

    assert run("fleet", "rollback", "tenant-0", *FLEET).out == f"callers of tenant-0 get {first['tenant-0']}\n"
    assert run("fleet", "unpublish", "tenant-2", *FLEET).out == "tenant-2 is unpublished\n"
    started = len(account.executions())
    again = run("fleet", "unpublish", "tenant-2", *FLEET)
    assert (again.status, again.out) == (0, "tenant-2 was unpublished already\n")
    assert len(account.executions()) == started
    assert account.current() == {**first, "tenant-2": None}
    listed = [line.split()[:2] for line in run("fleet", "list", *FLEET).out.splitlines()[1:]]
    assert listed == [["tenant-0", first["tenant-0"]], ["tenant-1", first["tenant-1"]], ["tenant-2", "(unpublished)"]]
    versions = [line.split()[0] for line in run("fleet", "list", "tenant-0", *FLEET).out.splitlines()[1:]]
    assert versions == [first["tenant-0"], changed]

    assert run("fleet", "rollback", "tenant-0", "--to", changed, *FLEET).status == 0
    assert account.current()["tenant-0"] == changed
    published = run("fleet", "publish", tenants, *FLEET)  # tenant-1 is rejected, tenant-2 was served before
    assert "published, archives were there: tenant-2" in published.out


def test_documents_that_a_publication_wrote_are_not_read_again(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents: list[str] = []
    opened = place.open_fleet

    def counted(name: str, platform: str | None = None) -> place.Fleet:
        fleet = opened(name, platform)

        def note(params: dict[str, Any], **_: Any) -> None:
            documents.append(params["Key"])

        fleet.aws.client("s3").meta.events.register("provide-client-params.s3.GetObject", note)
        return fleet

    monkeypatch.setattr(place, "open_fleet", counted)
    manifest = account.manifest("tenant-12")
    assert run("fleet", "publish", manifest, *FLEET).out.splitlines()[-1] == "1 published"
    assert any(key.endswith("/tenant-12.json") for key in documents)

    documents.clear()
    assert run("fleet", "publish", manifest, *FLEET).out == "0 published, 1 unchanged\n"
    assert documents == []


def test_a_publication_that_succeeded_is_reported_without_the_new_documents(
    account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [Catalogue({})]

    def read_once(_: place.Fleet) -> Catalogue:
        if answers:
            return answers.pop()
        raise EndpointConnectionError(endpoint_url="somewhere")

    monkeypatch.setattr(publishing, "read_catalogue", read_once)
    found = run("fleet", "publish", account.manifest("tenant-13"), *FLEET)
    assert (found.status, found.out.splitlines()[-1]) == (0, "1 published")


def test_an_entry_that_cannot_be_read_stops_no_other_ensemble(account: Account, run: Run) -> None:
    assert run("fleet", "publish", account.manifest("tenant-21", "tenant-22"), *FLEET).status == 0
    key = layout.catalogue_key(account.fleet.name_in_store, PLATFORM.label, "tenant-21")
    account.s3.put_object(Bucket=account.bucket, Key=key, Body=b'{"schema": 1}')

    listed = run("fleet", "list", *FLEET)
    other = run("fleet", "publish", account.manifest("tenant-23"), *FLEET)
    own = run("fleet", "publish", account.manifest("tenant-21", "tenant-24"), *FLEET)

    assert (listed.status, "tenant-22" in listed.out, "tenant-21" in listed.out) == (0, True, False)
    assert f"warning: the entry s3://{account.bucket}/{key} " in listed.err
    assert (other.status, other.out.splitlines()[-1]) == (0, "1 published")
    assert f"warning: the entry s3://{account.bucket}/{key} " in other.err
    assert (own.status, own.out.splitlines()[-1]) == (1, "1 published, 1 failed")
    assert f"failed tenant-21: the entry s3://{account.bucket}/{key} " in own.out

    account.s3.delete_object(Bucket=account.bucket, Key=key)  # as the message says
    assert run("fleet", "publish", account.manifest("tenant-21"), *FLEET).status == 0


def test_what_was_published_for_the_old_platform_during_its_change_is_named(account: Account, run: Run) -> None:
    assert run("fleet", "publish", account.manifest("tenant-13"), *FLEET).status == 0
    assert "warning" not in run("fleet", "list", *FLEET).err
    name = account.fleet.name_in_store
    place = [layout.catalogue_key(name, platform, "tenant-13") for platform in ("23.09-a10g", PLATFORM.label)]
    account.s3.copy_object(Bucket=account.bucket, Key=place[0], CopySource=f"{account.bucket}/{place[1]}")
    account.s3.delete_object(Bucket=account.bucket, Key=place[1])
    account.s3.delete_object(
        Bucket=account.bucket, Key=layout.fleet_prefix(name, PLATFORM.label) + account.target("tenant-13")
    )
    found = run("fleet", "list", *FLEET)
    forgotten = run("fleet", "unpublish", "tenant-13", "--forget", *FLEET)
    account.s3.delete_object(Bucket=account.bucket, Key=place[0])
    assert found.status == 0
    assert "the last change of 'tenant-13' (23.09-a10g)" in found.err
    assert (forgotten.status, place[0] in forgotten.said, "never" in forgotten.said) == (2, True, False)


def test_a_repository_that_changes_after_its_check_fails_alone(
    messages: Messages, account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, bad = "tenant-7", "tenant-8"
    manifest = account.manifest(sound, bad)
    started = len(account.executions())

    def changing(*arguments: Any, **named: Any) -> dict[str, str]:
        account.write(bad, "# changed after it was checked")
        return upload(*arguments, **named)

    monkeypatch.setattr(publishing, "upload", changing)
    found = run("fleet", "publish", manifest, *FLEET)

    assert found.status == 1
    failed, _, last = found.out.splitlines()
    assert failed.startswith(f"failed {bad}: ")
    messages.record("cdk-triton fleet", failed.replace(str(manifest.parent), "DIRECTORY"))
    assert last == "1 published, 1 failed"
    assert sound in account.current()
    assert bad not in account.current()
    (execution,) = account.executions()[: len(account.executions()) - started]
    assert execution["status"] == "SUCCEEDED"  # one that fails sets off the alarm of the publisher

    account.manifest(bad)
    found = run("fleet", "publish", manifest, *FLEET)
    assert (found.status, found.out.splitlines()[-1]) == (1, "0 published, 1 unchanged, 1 failed")
    assert len(account.executions()) == started + 1


def test_an_archive_that_is_deleted_while_its_execution_runs_is_a_failure(
    messages: Messages, account: Account, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = account.manifest("deleted", "kept")
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)
    key = served + account.target("deleted")

    def deleting(*arguments: Any, **named: Any) -> Any:
        """The end of an execution that finds the archive gone when it counts."""
        found = follow(*arguments, **named)
        account.s3.delete_object(Bucket=account.bucket, Key=key)
        return replace(found, succeeded=False, cause="1 of 2 ensembles could not be changed: …")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "follow", deleting)
        found = run("fleet", "publish", manifest, *FLEET)

    assert (found.status, found.out.splitlines()[-1]) == (1, "1 published, 1 failed")
    messages.record("cdk-triton fleet", found.out.splitlines()[0])
    assert run("fleet", "publish", manifest, *FLEET).out.splitlines()[-1] == "1 published, 1 unchanged"


def test_an_upload_that_is_damaged_is_uploaded_again_with_recheck(
    messages: Messages, account: Account, run: Run
) -> None:
    manifest = account.manifest("damaged")
    fleet = place.open_fleet(FLEET[1])
    key = artifact_key(ModelRepository.from_directory(manifest.parent / "tenants" / "damaged"), PLATFORM)
    upload = layout.upload_key(fleet.description.fleet, fleet.caller, key)
    account.s3.put_object(Bucket=account.bucket, Key=upload, Body=b"\x1f\x8b")

    found = run("fleet", "publish", manifest, *FLEET)
    assert found.status == 1
    messages.record("cdk-triton fleet", found.out.splitlines()[0])
    assert "--recheck" in found.out

    assert run("fleet", "publish", manifest, "--recheck", *FLEET).out.splitlines() == [
        "published, packed now: damaged",
        "1 published",
    ]


def test_the_warnings_of_the_checks_are_printed_again_and_again(account: Account, run: Run) -> None:
    manifest = account.manifest("tenant-9")
    account.write("tenant-9", "# nine", CONFIG + "dynamic_batching { default_priority_level: 1 }")
    for end in ("1 published", "0 published, 1 unchanged"):
        found = run("fleet", "publish", manifest, *FLEET)
        first, *_, last = found.out.splitlines()
        assert found.status == 0
        assert first.startswith("warning about tenant-9: model/config.pbtxt:6:20: warning CT235: ")
        assert last == end


def test_a_recheck_checks_what_has_not_changed(account: Account, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"checked-{number}" for number in range(3)]
    manifest = account.manifest(*names)
    for file in manifest.parent.glob("tenants/checked-*/**/*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    checked: list[str] = []

    def noted(repository: ModelRepository, *arguments: Any) -> dict[str, Any]:
        checked.append(repository.name)
        return prepared_document(repository, *arguments)

    monkeypatch.setattr(verdicts, "prepared_document", noted)
    counts = []
    for arguments in ((), (), ("--recheck",)):
        checked.clear()
        assert run("fleet", "publish", manifest, *arguments, *FLEET).status == 0
        counts.append(list(checked))
    assert counts == [names, [], names]


def test_checks_and_uploads_show_how_many_are_done(account: Account, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    class Screen(Progress):
        def say(self, text: str) -> None:
            texts.append(text)

    monkeypatch.setattr(publishing, "working", lambda _: nullcontext(Screen()))
    assert run("fleet", "publish", account.manifest("watched"), *FLEET).status == 0
    assert [text for text in texts if "repositories" in text or "archives" in text] == [
        "checked 0 of 1 repositories",
        "checked 1 of 1 repositories",
        "uploaded 0 of 1 archives",
        "uploaded 1 of 1 archives",
    ]


def test_a_rollback_that_must_fail_starts_no_execution(messages: Messages, account: Account, run: Run) -> None:
    """A failed execution sets off the alarm of the publisher."""
    manifest = account.manifest("tenant-8")
    first = account.target("tenant-8")
    assert run("fleet", "publish", manifest, *FLEET).status == 0
    started = len(account.executions())
    found = run("fleet", "rollback", "tenant-8", *FLEET)
    assert found.status == 2
    messages.record("cdk-triton fleet", found.said)

    account.write("tenant-8", "# second")
    assert run("fleet", "publish", manifest, *FLEET).status == 0
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)
    account.s3.delete_object(Bucket=account.bucket, Key=served + first)
    found = run("fleet", "rollback", "tenant-8", *FLEET)
    assert found.status == 2
    messages.record("cdk-triton fleet", found.said)
    assert len(account.executions()) == started + 1
    assert account.current()["tenant-8"] == account.target("tenant-8")


def test_a_rollback_to_a_version_that_the_catalogue_does_not_list_any_more_names_those_that_it_lists(
    messages: Messages, account: Account, run: Run
) -> None:
    manifest = account.manifest("forgotten")
    first = account.target("forgotten")
    assert run("fleet", "publish", manifest, *FLEET).status == 0
    assert run("fleet", "unpublish", "forgotten", "--forget", *FLEET).status == 0
    account.write("forgotten", "# second")
    assert run("fleet", "publish", manifest, *FLEET).status == 0

    found = run("fleet", "rollback", "forgotten", "--to", first, *FLEET)
    assert found.status == 2
    assert f"the catalogue does not list the version '{first}'" in found.said  # whose archive is still there
    assert account.target("forgotten") in found.said
    messages.record("cdk-triton fleet rollback", found.said)

    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)
    account.s3.delete_object(Bucket=account.bucket, Key=served + account.target("forgotten"))
    found = run("fleet", "rollback", "forgotten", "--to", first, *FLEET)
    assert found.status == 2
    messages.record("cdk-triton fleet rollback", found.said)


def test_a_rollback_of_an_ensemble_whose_archives_were_deleted_names_those_that_are_there(
    messages: Messages, account: Account, run: Run
) -> None:
    versions = []
    for content in ("# first", "# second"):
        tenants = account.write("departed", content)
        (tenants.parent / "departed.csv").write_text("ensemble,repository\ndeparted,tenants/departed\n")
        assert run("fleet", "publish", tenants.parent / "departed.csv", *FLEET).status == 0
        versions.append(account.target("departed"))
    first, second = versions
    assert run("fleet", "unpublish", "departed", *FLEET).status == 0
    served = layout.fleet_prefix(account.fleet.name_in_store, PLATFORM.label)

    account.s3.delete_object(Bucket=account.bucket, Key=served + second)  # by hand
    for arguments in ((), ("--to", second)):
        found = run("fleet", "rollback", "departed", *arguments, *FLEET)
        assert found.status != 0
        assert second in found.said
        assert f"but has '{first}'" in found.said
        messages.record("cdk-triton fleet rollback", found.said)

    account.s3.delete_object(Bucket=account.bucket, Key=served + first)
    for arguments in ((), ("--to", first)):
        found = run("fleet", "rollback", "departed", *arguments, *FLEET)
        assert found.status != 0
        messages.record("cdk-triton fleet rollback", found.said)
    assert account.current()["departed"] is None


def test_a_forgotten_ensemble_has_no_versions_and_can_be_published_again(
    messages: Messages, account: Account, run: Run
) -> None:
    tenants = account.write("left", "# first")
    (tenants.parent / "left.csv").write_text("ensemble,repository\nleft,tenants/left\n")
    publish = ("fleet", "publish", tenants.parent / "left.csv", *FLEET)
    forget = ("fleet", "unpublish", "left", "--forget", *FLEET)
    assert run(*publish).status == 0
    assert run("fleet", "unpublish", "left", *FLEET).status == 0
    assert run(*forget).out == "left is unpublished, and the catalogue does not list its versions any more\n"
    started = len(account.executions())

    assert run(*forget).out == "left was unpublished already\n"
    assert [line.split()[0] for line in run("fleet", "list", "left", *FLEET).out.splitlines()[1:]] == ["(unpublished)"]
    found = run("fleet", "rollback", "left", *FLEET)
    assert found.status == 2
    messages.record("cdk-triton fleet rollback", found.said)
    assert len(account.executions()) == started

    assert run(*publish).status == 0
    assert account.current()["left"] == account.target("left")


UNUSABLE = {
    "a stack that is not there": ("list", "--fleet", "Nothing/Fleet"),
    "no path": ("list", "--fleet", "Serving"),
    "another path": ("list", "--fleet", "Serving/Flee"),
    "an ensemble that was never published": ("rollback", "tenant-77", *FLEET),
    "a version that is not there": ("rollback", "tenant-7", "--to", "tenant-7-0.tar.gz", *FLEET),
    "an execution that is not there": ("publish", "--attach", "nothing", *FLEET),
    "neither manifest nor execution": ("publish", *FLEET),
    "everything for the same platform": ("publish", "--all", *FLEET),
    "everything, checked again": ("publish", "--all", "--platform", "25.09/ml.g5.xlarge", "--recheck", *FLEET),
    "an execution, checked again": ("publish", "--attach", "nothing", "--recheck", *FLEET),
    "everything and a manifest": ("publish", "tenants", "--all", "--platform", "25.09/ml.g5.xlarge", *FLEET),
}


@pytest.mark.parametrize("arguments", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.usefixtures("administrator")
def test_arguments_that_lead_nowhere_are_usage_errors(
    messages: Messages, account: Account, run: Run, arguments: tuple[str, ...]
) -> None:
    if "--to" in arguments:
        assert run("fleet", "publish", account.manifest("tenant-7"), *FLEET).status == 0
    found = run("fleet", *arguments)
    assert found.status == 2
    messages.record("cdk-triton fleet", found.said)


@pytest.mark.usefixtures("administrator")
def test_a_stack_without_a_publisher_says_how_to_reach_what_is_published(
    messages: Messages, account: Account, run: Run
) -> None:
    template = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    account.aws.client("cloudformation").create_stack(StackName="Without", TemplateBody=template)

    found = run("fleet", "unpublish", "tenant-7", "--fleet", "Without/Fleet")

    assert found.status == 2
    assert "add_publisher()" in found.said
    messages.record("cdk-triton fleet", found.said)


@pytest.mark.usefixtures("administrator")
def test_a_publisher_may_be_in_a_nested_stack(messages: Messages, account: Account, run: Run) -> None:
    inner = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": "https://x"}, "Condition": "Never"}
    resources = {"Topic": {"Type": "AWS::SNS::Topic"}, "Inner": inner}
    template = json.dumps({"Conditions": {"Never": {"Fn::Equals": ["a", "b"]}}, "Resources": resources})
    account.aws.client("cloudformation").create_stack(StackName="Outer", TemplateBody=template)

    found = run("fleet", "list", "--fleet", "Outer/Fleet")

    assert found.status == 2
    messages.record("cdk-triton fleet", found.said)
