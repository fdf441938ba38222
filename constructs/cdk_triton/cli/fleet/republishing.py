"""Checks what is published for one platform, before the same archives are published for another one.

The checks need files. So the archive of an ensemble, or its sources if it was built, is downloaded and unpacked into a
temporary directory, a few at a time. No archive is uploaded again: the machine reads the same objects in the store.
Golden requests are, because the rehearsal of another platform has other variables.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError

from cdk_triton.artifacts.publisher_description import platform_name
from cdk_triton.cli.artifacts.aws import code_of, in_parallel
from cdk_triton.cli.fleet.manifest import Listed
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.cli.fleet.unpacking import unpack
from cdk_triton.cli.fleet.verdicts import Verdict, judge
from cdk_triton.errors import StoreError
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Version
from cdk_triton.protocol.documents import DocumentError, faults_translated
from cdk_triton.protocol.publication import UploadedRehearsal
from cdk_triton.protocol.rehearsal import RehearsalPass
from cdk_triton.rehearsal.variables import rehearsed_variables

__all__ = ["has_passed_there", "judge_published"]

_AT_ONCE: Final = 16
"""How many archives are on the disk at a time."""

_BROKEN: Final = (HTTPClientError, IncompleteReadError)
"""A broken connection. boto3 repeats requests by itself, but not the reading of an answer."""

_REASONS: Final = {
    "NoSuchKey": "is not in the store, because somebody deleted the file",
    "AccessDenied": "is missing, or you do not have the permission to read it, which publisher.grant_publish_all() "
    "grants",
}


def judge_published(
    present: Fleet,
    following: Fleet,
    versions: Mapping[str, Version],
    *,
    progress: Callable[[int], object] = lambda _: None,
) -> tuple[list[Verdict], dict[str, str]]:
    """Check what is published for the present platform as a publication for another platform does.

    Args:
        present: the publisher of the present platform.
        following: the publisher of the other platform.
        versions: what is published, by ensemble.
        progress: is called with the number of ensembles that are done, first with 0.

    Returns:
        The verdicts, and the reason of each ensemble that could not be judged. The directories of the verdicts are
        gone.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    verdicts, failed, names = list[Verdict](), dict[str, str](), sorted(versions)
    progress(0)
    for first in range(0, len(names), _AT_ONCE):
        part = names[first : first + _AT_ONCE]
        with tempfile.TemporaryDirectory(prefix="cdk-triton-") as directory:
            # The name of the directory is that of the repository.
            places = {name: Path(directory, str(n), versions[name].repository) for n, name in enumerate(part)}
            fetch = partial(_fetch, present, following)
            reasons = in_parallel(lambda name: fetch(versions[name], places[name]), part)  # noqa: B023  used at once
            failed |= {name: reason for name, reason in zip(part, reasons, strict=True) if reason is not None}
            listed = [Listed(name, places[name]) for name in part if name not in failed]
            judged = [(each, versions[each.listed.ensemble]) for each in judge(listed, following.description)]
            found = in_parallel(lambda each: _finished(present, following, *each), judged)
            verdicts += [each for each in found if isinstance(each, Verdict)]
            failed |= {
                each.listed.ensemble: reason
                for (each, _), reason in zip(judged, found, strict=True)
                if isinstance(reason, str)
            }
        progress(first + len(part))
    return verdicts, failed


def _fetch(present: Fleet, following: Fleet, version: Version, directory: Path) -> str | None:
    """Unpack an archive, or the sources of one that was built; the answer is the reason if that is not possible."""
    key = present.served + version.target_model
    if version.built:
        key = layout.kept_sources_key(version.repository, version.artifact_key)
    try:
        try:
            _download(present, key, directory)
        except _BROKEN:
            shutil.rmtree(directory)
            _download(present, key, directory)
    except ClientError as error:
        if code_of(error) not in _REASONS:
            raise
        return f"{key} {_REASONS[code_of(error)]}; {_from_its_repository(following)}"
    except _BROKEN as error:
        return f"the connection broke twice while {key} was downloaded ({error}); run the same command again"
    except StoreError as error:
        return str(error)
    return None


def _download(fleet: Fleet, key: str, directory: Path) -> None:
    directory.mkdir(parents=True)
    unpack(fleet.aws.client("s3").get_object(Bucket=fleet.bucket, Key=key)["Body"], directory, key)


def _finished(present: Fleet, following: Fleet, verdict: Verdict, version: Version) -> Verdict | str:
    """The verdict with its rehearsal, or the reason why the ensemble cannot be published."""
    if verdict.errors:
        return verdict
    reason = _difference(verdict, version, following)
    if reason is not None:
        return reason
    if version.rehearsal is None or not following.description.rehearse:
        return verdict
    try:
        rehearsal = _rehearsal_there(present, following, version, version.rehearsal)
        _copy_golden(present, following, version, version.rehearsal, rehearsal.golden)
        return verdict.rehearsed(rehearsal, following.description)
    except ClientError as error:
        if code_of(error) not in _REASONS:
            raise
        reason = f"the golden requests of its rehearsal {_REASONS[code_of(error)]}"
    except _BROKEN as error:
        return f"the connection broke while its golden requests were downloaded ({error}); run the same command again"
    except DocumentError as error:
        reason = f"the pass of its rehearsal cannot be read ({error})"
    return f"{reason}; {_from_its_repository(following)}"


def has_passed_there(present: Fleet, following: Fleet, version: Version, there: Version) -> bool:
    """Whether what has passed a rehearsal for the present platform has passed the same one for another platform.

    Args:
        present: the publisher of the present platform.
        following: the publisher of the other platform.
        version: what is published for the present platform.
        there: what is published for the other platform, with the same target model.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    if version.rehearsal is None or not following.description.rehearse:
        return True
    if there.rehearsal is None:
        return False
    try:
        rehearsal = _rehearsal_there(present, following, version, version.rehearsal)
    except ClientError as error:
        if code_of(error) not in _REASONS:
            raise
        return True
    except DocumentError:
        # Nothing can be compared, and only a publication from the repository helps, after which it would be so again.
        return True
    return following.description.rehearsal_key(rehearsal, there.artifact_key) == there.rehearsal


def _rehearsal_there(present: Fleet, following: Fleet, version: Version, key: str) -> UploadedRehearsal:
    """The rehearsal that a version has passed, with the variables of another platform's container.

    Raises:
        DocumentError: the pass cannot be read.
        ClientError, BotoCoreError: AWS rejected a call.
    """
    place = layout.pass_key(version.repository, version.artifact_key, key)
    found = RehearsalPass.parse(present.aws.client("s3").get_object(Bucket=present.bucket, Key=place)["Body"].read())
    variables = rehearsed_variables(None, "multi", following.description.rehearsed_environment, None)
    with faults_translated():
        document = dict(found.document)
        variables |= {name: document["environment"][name] for name in document["own_variables"]}
    return UploadedRehearsal(found.golden, {**document, "environment": dict(sorted(variables.items()))})


def _copy_golden(present: Fleet, following: Fleet, version: Version, key: str, golden: str) -> None:
    """Upload the golden requests of a rehearsal for another publisher, which verifies their SHA-256, `golden`.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    s3, place = present.aws.client("s3"), layout.kept_golden_key(version.repository, version.artifact_key, key)
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(s3.get_object(Bucket=present.bucket, Key=place)["Body"], file)
        file.seek(0)
        target = layout.golden_upload_key(following.description.fleet, following.caller, golden)
        s3.put_object(Bucket=following.bucket, Key=target, Body=file)


def _difference(verdict: Verdict, version: Version, following: Fleet) -> str | None:
    """Why the callers of an ensemble would have to send another target model; None if they would not."""
    if verdict.target_model == version.target_model:
        return None
    return (
        f"its target model would be {verdict.target_model} and not {version.target_model}, because the recipes of the "
        f"publisher are others than when it was published; {_from_its_repository(following)}"
    )


def _from_its_repository(fleet: Fleet) -> str:
    return (
        "publish the ensemble from its repository: "
        f"cdk-triton fleet publish MANIFEST --fleet {fleet.name} --platform {platform_name(fleet.description.platform)}"
    )
