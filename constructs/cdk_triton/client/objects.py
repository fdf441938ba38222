"""The boundary to S3, where requests and answers of an asynchronous endpoint are."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cdk_triton._wording import quoted
from cdk_triton.client.runtime import foreign_errors_translated
from cdk_triton.errors import ConfigurationError, ResultAccessError, ResultExpiredError

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

__all__ = ["Location", "Stored", "find", "location", "put"]

_MISSING = ("NoSuchKey", "404", "NotFound")
_DENIED = ("AccessDenied", "403", "Forbidden")


class Location(NamedTuple):
    """A bucket and a key, or the beginning of keys."""

    bucket: str
    key: str

    def __str__(self) -> str:
        """The S3 URI."""
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class Stored:
    """An object that was read."""

    body: bytes
    content_type: str


def location(uri: str) -> Location:
    """Split an S3 URI.

    Raises:
        ConfigurationError: the text is not the URI of an S3 object or prefix.
    """
    found = re.fullmatch(r"s3://([^/]+)/(.+?)/*", uri) if isinstance(uri, str) else None
    if found is None:
        raise ConfigurationError(f"{quoted(uri)} is not an S3 location: write it as s3://bucket/prefix")
    return Location(found[1], found[2])


def put(s3: Any, place: Location, body: bytes, content_type: str, *, where: str) -> None:
    """Upload a request; a large one in parts.

    Raises:
        InvocationError: the object could not be uploaded.
    """
    with foreign_errors_translated(
        f"{where}, upload to {place}", "s3:PutObject there, and the use of the bucket's key"
    ):
        s3.upload_fileobj(io.BytesIO(body), place.bucket, place.key, ExtraArgs={"ContentType": content_type})


def find(s3: Any, place: Location, *, where: str) -> Stored | None:
    """Read an object; return None if it does not exist, or not yet.

    S3 answers 403 instead of 404 to a caller without permission to list the bucket (GetObject in the API of S3). AWS
    does not document whether a permission to list with a condition on `s3:prefix` is enough for a 404. So after a 403,
    this function lists the bucket with the object's key as the prefix.

    Raises:
        ResultAccessError: the caller has no permission to read the object, or to check that it exists.
        ResultExpiredError: the object was there and has been deleted.
        InvocationError: any other failure of S3 or the network.
    """
    from botocore.exceptions import ClientError

    with foreign_errors_translated(f"{where}, answer at {place}", "s3:GetObject there"):
        try:
            found = s3.get_object(Bucket=place.bucket, Key=place.key)
            return Stored(found["Body"].read(), found.get("ContentType", ""))
        except ClientError as error:
            code = _code(error)
            if code in _MISSING:
                _reject_deleted(error, place, where)
                return None
            if code not in _DENIED:
                raise
            denied = error
        _reject_hidden(s3, place, where, denied)
        return None


def _reject_hidden(s3: Any, place: Location, where: str, denied: ClientError) -> None:
    """Raise an error if the object exists, or if the caller may not check whether it exists."""
    from botocore.exceptions import ClientError

    try:
        listed = s3.list_objects_v2(Bucket=place.bucket, Prefix=place.key, MaxKeys=1)
    except ClientError as error:
        if _code(error) not in _DENIED:
            raise
        raise ResultAccessError(
            f"{where}: S3 does not let the caller read or list {place}, so the client cannot check that the answer "
            "exists: allow the caller s3:GetObject, and s3:ListBucket with the prefix of the answers, as grant_invoke "
            "does"
        ) from error
    if any(each["Key"] == place.key for each in listed.get("Contents", ())):
        raise ResultAccessError(
            f"{where}: {place} exists, but S3 does not let the caller read this object: allow s3:GetObject, and "
            "kms:Decrypt with the key that encrypts the object, as grant_invoke does"
        ) from denied


def _reject_deleted(error: ClientError, place: Location, where: str) -> None:
    """Raise an error if the object existed: a bucket with versions reports that in `x-amz-delete-marker`."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    if headers.get("x-amz-delete-marker") == "true":
        raise ResultExpiredError(
            f"{where}: {place} existed, but has expired or was deleted; submit the request again"
        ) from error


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
