"""Conditions on writes to S3, on which the store's locks and commits depend."""

from __future__ import annotations

from collections.abc import Iterator

import aws_cdk as cdk
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import store
from tools.verify.trial import Trial, error_of, prefix_of


def _stacks(app: cdk.App) -> None:
    store(cdk.Stack(app, prefix_of("object_writes")))


def _observe(trial: Trial) -> Iterator[Observation]:
    bucket = trial.deploy()["Bucket"]
    s3 = trial.client("s3")
    source = {"Bucket": bucket, "Key": "verify/source"}
    etag = s3.put_object(**source, Body=b"source")["ETag"]

    def copy(key: str, expected: str) -> tuple[str, str]:
        """Copy the source in one part, as the handler copies archives; return the error."""
        target = {"Bucket": bucket, "Key": key}
        upload = target | {"UploadId": s3.create_multipart_upload(**target)["UploadId"]}
        part = upload | {"PartNumber": 1, "CopySource": source, "CopySourceIfMatch": expected}
        error = error_of(s3.upload_part_copy, **part)
        if not error[0]:
            parts = [{"PartNumber": 1, "ETag": each["ETag"]} for each in s3.list_parts(**upload)["Parts"]]
            error = error_of(s3.complete_multipart_upload, **upload, MultipartUpload={"Parts": parts}, IfNoneMatch="*")
        if error[0]:
            s3.abort_multipart_upload(**upload)
        return error

    first, second, changed = copy("verify/a", etag), copy("verify/a", etag), copy("verify/b", '"another"')
    yield Observation(
        "multipart_copy",
        (first[0], second[0], changed[0]) == ("", "PreconditionFailed", "PreconditionFailed"),
        f"a first copy: {first[0] or 'written'}; a second one: {second[0]}; of a source that has changed: {changed[0]}",
    )
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": source["Key"], "ETag": '"another"'}]})
    errors = [each["Code"] for each in answer.get("Errors", [])]
    gone, _ = error_of(s3.head_object, **source)
    yield Observation(
        "delete_with_etag",
        bool(errors) and not gone,
        f"another ETag: {errors or 'deleted'}; HeadObject: {gone or 'there'}",
    )


EXPERIMENT = Experiment(
    parts=("multipart_copy", "delete_with_etag"),
    minutes=5,
    dollars=0.01,
    spends="some requests to S3",
    observe=_observe,
    stacks=_stacks,
)
