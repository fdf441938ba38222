"""Uploads the golden requests of ensembles that are published."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from cdk_triton.cli.artifacts.aws import in_parallel
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.cli.fleet.verdicts import Verdict
from cdk_triton.errors import CdkTritonError
from cdk_triton.protocol import layout
from cdk_triton.rehearsal.prepared import write_published
from cdk_triton.triton import ModelRepository

__all__ = ["upload_golden"]


def upload_golden(fleet: Fleet, verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Upload the golden requests that earlier commands have not uploaded.

    Returns:
        Why those of an ensemble cannot be packed, by ensemble.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    keys = {
        each.listed.ensemble: layout.golden_upload_key(fleet.description.fleet, fleet.caller, each.rehearsal.golden)
        for each in verdicts
        if each.rehearsal is not None
    }
    if not keys:
        return {}
    there = set(fleet.keys(layout.uploads_prefix(fleet.description.fleet, fleet.caller)))
    missing = [each for each in verdicts if keys.get(each.listed.ensemble, "") not in {"", *there}]
    with tempfile.TemporaryDirectory(prefix="cdk-triton-") as directory:
        files = {each.listed.ensemble: Path(directory, f"{number}.zip") for number, each in enumerate(missing)}
        reasons = in_parallel(
            lambda each: _upload(fleet, each, keys[each.listed.ensemble], files[each.listed.ensemble]), missing
        )
    return {each.listed.ensemble: reason for each, reason in zip(missing, reasons, strict=True) if reason is not None}


def _upload(fleet: Fleet, verdict: Verdict, key: str, file: Path) -> str | None:
    assert verdict.rehearsal is not None  # of one with a key
    directory = verdict.listed.directory
    try:
        repository = ModelRepository.from_directory(directory)
        is_as_checked = write_published(repository, verdict.rehearsal, file)
    except CdkTritonError as error:
        return str(error)
    if not is_as_checked:
        return (
            f"a golden request of {directory} changed after it was checked: publish it again when no program writes to "
            "it any more"
        )
    try:
        with file.open("rb") as body:
            fleet.aws.client("s3").put_object(Bucket=fleet.bucket, Key=key, Body=body)
    finally:
        file.unlink()
    return None
