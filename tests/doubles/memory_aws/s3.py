"""S3 in memory: conditional writes, multipart copies, and the history of every object."""

from __future__ import annotations

import hashlib
import io
import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any
from urllib.parse import unquote

from botocore.response import StreamingBody

from memory_aws.client import refusal
from memory_aws.clock import Clock

__all__ = ["S3"]

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class _Object:
    body: bytes
    etag: str
    modified: datetime
    metadata: Mapping[str, str]


@dataclass
class _Upload:
    bucket: str
    key: str
    metadata: Mapping[str, str]
    initiated: datetime
    parts: dict[int, bytes] = field(default_factory=dict)


class S3:
    """Buckets, by name; nothing can be deleted but by `expire`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[tuple[str, str], _Object] = {}
        self._uploads: dict[str, _Upload] = {}
        self._numbers = itertools.count(1)
        self.history: dict[tuple[str, str], list[bytes]] = defaultdict(list)
        self.tags: dict[str, str] = {}

    # -- what a test does

    def get(self, bucket: str, key: str) -> bytes | None:
        """An object's content."""
        found = self._objects.get((bucket, key))
        return None if found is None else found.body

    def put(self, bucket: str, key: str, body: bytes, metadata: Mapping[str, str] | None = None) -> str:
        """Write an object, whatever is there."""
        return self._write(bucket, key, body, _md5(body), metadata or {})

    def expire(self, bucket: str, prefix: str) -> None:
        """Delete what a lifecycle rule deletes."""
        for name in [name for name in self._objects if name[0] == bucket and name[1].startswith(prefix)]:
            del self._objects[name]

    # -- what the handlers call

    def get_bucket_tagging(self, p: Parameters) -> dict[str, Any]:
        """S3 answers an error where a bucket has no tags."""
        if not self.tags:
            raise refusal("NoSuchTagSet", "The TagSet does not exist", 404)
        return {"TagSet": [{"Key": key, "Value": value} for key, value in self.tags.items()]}

    def head_object(self, p: Parameters) -> dict[str, Any]:
        """404 without a code, as HEAD answers."""
        found = self._objects.get((p["Bucket"], p["Key"]))
        if found is None:
            raise refusal("404", "Not Found", 404)
        return self._described(found) | {"ContentLength": len(found.body)}

    def get_object(self, p: Parameters) -> dict[str, Any]:
        """With Range and IfMatch."""
        found = self._objects.get((p["Bucket"], p["Key"]))
        if found is None:
            raise refusal("NoSuchKey", "The specified key does not exist.", 404)
        if "IfMatch" in p and p["IfMatch"] != found.etag:
            raise _failed()
        body = found.body
        if "Range" in p:
            first, last = p["Range"].removeprefix("bytes=").split("-")
            body = body[int(first) : int(last) + 1]
            if not body:
                raise refusal("InvalidRange", "The requested range is not satisfiable", 416)
        return self._described(found) | {
            "ContentLength": len(body),
            "Body": StreamingBody(io.BytesIO(body), len(body)),
        }

    def put_object(self, p: Parameters) -> dict[str, Any]:
        """With IfMatch and IfNoneMatch."""
        found = self._objects.get((p["Bucket"], p["Key"]))
        if "IfNoneMatch" in p and found is not None:
            raise _failed()
        if "IfMatch" in p and found is None:
            raise refusal("NoSuchKey", "The specified key does not exist.", 404)
        if "IfMatch" in p and found is not None and p["IfMatch"] != found.etag:
            raise _failed()
        return {"ETag": self.put(p["Bucket"], p["Key"], p["Body"], p.get("Metadata"))}

    def list_objects_v2(self, p: Parameters) -> dict[str, Any]:
        """All in one page, in the order of the keys."""
        found = sorted(
            ((key, each) for (bucket, key), each in self._objects.items() if bucket == p["Bucket"]), key=itemgetter(0)
        )
        listed = [
            {"Key": key, "Size": len(each.body), "ETag": each.etag, "LastModified": each.modified}
            for key, each in found
            if key.startswith(p["Prefix"]) and key > p.get("StartAfter", "")
        ]
        return {"Contents": listed, "KeyCount": len(listed)} if listed else {"KeyCount": 0}

    def create_multipart_upload(self, p: Parameters) -> dict[str, Any]:
        """Any number of them to one key."""
        upload = f"upload-{next(self._numbers)}"
        self._uploads[upload] = _Upload(p["Bucket"], p["Key"], p.get("Metadata", {}), self._clock.date())
        return {"Bucket": p["Bucket"], "Key": p["Key"], "UploadId": upload}

    def list_multipart_uploads(self, p: Parameters) -> dict[str, Any]:
        """Those that are neither completed nor expired."""
        found = [
            {"Key": upload.key, "UploadId": name, "Initiated": upload.initiated}
            for name, upload in self._uploads.items()
            if upload.bucket == p["Bucket"] and upload.key.startswith(p["Prefix"])
        ]
        return {"Uploads": found} if found else {}

    def list_parts(self, p: Parameters) -> dict[str, Any]:
        """Numbers and ETags."""
        parts = self._upload(p).parts
        return {"Parts": [{"PartNumber": n, "ETag": _md5(parts[n]), "Size": len(parts[n])} for n in sorted(parts)]}

    def upload_part_copy(self, p: Parameters) -> dict[str, Any]:
        """With CopySourceRange and CopySourceIfMatch."""
        bucket, _, key = unquote(p["CopySource"]).partition("/")
        upload, found = self._upload(p), self._objects.get((bucket, key))
        if found is None:
            raise refusal("NoSuchKey", "The specified key does not exist.", 404)
        if p["CopySourceIfMatch"] != found.etag:
            raise _failed()
        body = found.body
        if "CopySourceRange" in p:
            first, last = p["CopySourceRange"].removeprefix("bytes=").split("-")
            body = body[int(first) : int(last) + 1]
        upload.parts[p["PartNumber"]] = body
        return {"CopyPartResult": {"ETag": _md5(body), "LastModified": self._clock.date()}}

    def complete_multipart_upload(self, p: Parameters) -> dict[str, Any]:
        """With IfNoneMatch; the parts must be those that were listed."""
        upload = self._upload(p)
        bodies = [upload.parts[part["PartNumber"]] for part in p["MultipartUpload"]["Parts"]]
        if [_md5(body) for body in bodies] != [part["ETag"] for part in p["MultipartUpload"]["Parts"]]:
            raise refusal("InvalidPart", "One or more of the specified parts could not be found.", 400)
        if "IfNoneMatch" in p and (upload.bucket, upload.key) in self._objects:
            raise _failed()
        digests = b"".join(hashlib.md5(body, usedforsecurity=False).digest() for body in bodies)
        etag = f"{_md5(digests)[:-1]}-{len(bodies)}" + '"'
        del self._uploads[p["UploadId"]]
        self._write(upload.bucket, upload.key, b"".join(bodies), etag, upload.metadata)
        return {"Bucket": upload.bucket, "Key": upload.key, "ETag": etag}

    def _upload(self, p: Parameters) -> _Upload:
        upload = self._uploads.get(p["UploadId"])
        if upload is None or (upload.bucket, upload.key) != (p["Bucket"], p["Key"]):
            raise refusal("NoSuchUpload", "The specified multipart upload does not exist.", 404)
        return upload

    def _write(self, bucket: str, key: str, body: bytes, etag: str, metadata: Mapping[str, str]) -> str:
        self._objects[bucket, key] = _Object(body, etag, self._clock.date(), dict(metadata))
        self.history[bucket, key].append(body)
        return etag

    def _described(self, found: _Object) -> dict[str, Any]:
        return {"ETag": found.etag, "LastModified": found.modified, "Metadata": dict(found.metadata)}


def _md5(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _failed() -> Exception:
    return refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412)
