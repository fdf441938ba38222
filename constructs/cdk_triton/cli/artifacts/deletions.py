"""The record of what `gc` deleted: an object of the store for each run, which no later run deletes or changes.

The output of `gc` may get lost, so the record is in the store itself. If it cannot be written, all deletions are
undone. The record contains the version of each delete marker, which S3's own listing of versions and CloudTrail's data
events have too, so an auditor can compare them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from cdk_triton.cli.artifacts.garbage import Candidate
from cdk_triton.cli.artifacts.store import Store
from cdk_triton.protocol import layout

__all__ = ["Reason", "write_record"]

SCHEMA = 1

Reason = Mapping[str, int]
"""The options of `gc` that made the objects garbage, by name."""


def write_record(store: Store, deleted: Sequence[Candidate], markers: Mapping[str, str], reason: Reason) -> str:
    """Write the record of a deletion: its objects, the time, the caller and the reason.

    Args:
        store: the store.
        deleted: what was deleted.
        markers: the version of the delete marker of each object.
        reason: the options of `gc`.

    Returns:
        The record's object key.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    document = {
        "schema": SCHEMA,
        "time": now.isoformat(),
        "by": store.aws.client("sts").get_caller_identity()["Arn"],
        "reason": {"unused": True, **reason},
        "deleted": [
            {
                "name": each.name,
                "stored": each.stored.isoformat(),
                "size": each.size,
                "objects": [
                    {"key": file.key, "size": file.size, "etag": file.etag, "delete_marker": markers.get(file.key)}
                    for file in each.files
                ],
            }
            for each in deleted
        ],
    }
    key = layout.deletion_key(now, secrets.token_hex(4))
    body = json.dumps(document, indent=2, ensure_ascii=False).encode()
    store.aws.client("s3").put_object(Bucket=store.bucket, Key=key, Body=body)
    return key
