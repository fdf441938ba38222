"""The notes of an organisation about a model, such as a commit and an approver, in manifests and as tags.

They are not part of the artifact key, so a new commit does not cause the same files to be built again.

The limits are those of a tag of SageMaker (shapes `TagKey`, `TagValue` and `TagList` of its API) and of all of AWS:
"Tags owned by Amazon Web Services (AWS) have the reserved prefix: aws:" (shape `Tag` of CloudFormation's API).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from aws_cdk import Tags
from aws_cdk import aws_sagemaker as sagemaker
from constructs import IConstruct

from cdk_triton._tokens import reject_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import path_of

__all__ = ["check_metadata", "tag_model"]

ARTIFACT_KEY_TAG = "cdk-triton:artifact-key"
"""The tag with the artifact key, on a `TritonModel` that has metadata."""

MAX_TAGS, MAX_KEY, MAX_VALUE = 50, 128, 256
RESERVED = ("aws:", "cdk-triton:")
"""Reserved beginnings of keys, in upper or lower case: the first by AWS, the second by this library."""


def check_metadata(scope: IConstruct, metadata: Mapping[str, str] | None) -> dict[str, str]:
    """The metadata, if each entry can be a tag.

    Raises:
        ConfigurationError: there are too many entries; a key or a value is too long, contains a character that
            SageMaker rejects, or contains an unresolved token; or a key has a reserved prefix.
    """
    entries = dict(metadata or {})
    what = f"metadata of {path_of(scope)}"
    if len(entries) >= MAX_TAGS:  # one is for the artifact key
        raise ConfigurationError(
            f"{what} has {len(entries)} entries, but a SageMaker Model takes {MAX_TAGS} tags, of which the artifact "
            f"key needs one: use at most {MAX_TAGS - 1} entries"
        )
    for key, value in entries.items():
        reject_token(key, f"the key in {what},")
        reject_token(value, f"{key!r} in {what}, which is")
        if key.lower().startswith(RESERVED):
            raise ConfigurationError(
                f"{what} has the key {quoted(key)}, but AWS reserves the prefix 'aws:' of tags, and this library "
                "reserves the prefix 'cdk-triton:': use another key"
            )
        _check(key, 1, MAX_KEY, f"the key {quoted(key)} in {what}")
        _check(value, 0, MAX_VALUE, f"the value of {quoted(key)} in {what}")
    return entries


def tag_model(model: sagemaker.CfnModel, metadata: Mapping[str, str], artifact_key: str | None = None) -> None:
    """Tag a SageMaker Model with its metadata, and with the artifact key if it serves a single archive.

    A change of tags is an update in place: `Tags` is not among the `createOnlyProperties` in CloudFormation's schema of
    AWS::SageMaker::Model.
    """
    if metadata and artifact_key is not None:
        Tags.of(model).add(ARTIFACT_KEY_TAG, artifact_key)
    for key, value in metadata.items():
        Tags.of(model).add(key, value)


def _check(text: str, least: int, most: int, what: str) -> None:
    if not least <= len(text) <= most:
        raise ConfigurationError(
            f"{what} has {len(text)} characters, but SageMaker takes {least} to {most} in a tag: use a text of such a "
            "length, or keep the entry elsewhere"
        )
    if wrong := next((each for each in text if not _is_allowed(each)), None):
        raise ConfigurationError(
            f"{what} contains {wrong!r}, which SageMaker rejects in a tag: use letters, digits, spaces and _.:/=+-@"
        )


def _is_allowed(character: str) -> bool:
    r"""The pattern of both shapes: `[\p{L}\p{Z}\p{N}_.:/=+\-@]*`."""
    return character in "_.:/=+-@" or unicodedata.category(character)[0] in "LZN"
