"""Downloads model data, an archive or files, to a directory that a tritonserver without a GPU can load."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Protocol, runtime_checkable

from botocore.exceptions import BotoCoreError, ClientError

from cdk_triton.errors import LocalError, ModelConfigError
from cdk_triton.triton import format_model_config, parse_model_config
from cdk_triton_local.triton.archives import unpack

__all__ = [
    "ListedStore",
    "ModelDataNotFoundError",
    "ObjectStore",
    "S3Location",
    "fetch_archive",
    "fetch_files",
    "move_deeper",
    "use_cpu_instances",
]

_LONGEST_NAME: Final = 255


class ObjectStore(Protocol):
    """The methods of a boto3 S3 client that archives need."""

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 boto3's names
        """Open an object; `Body` of the answer is a readable stream."""


@runtime_checkable
class ListedStore(ObjectStore, Protocol):
    """The same, and the methods that uncompressed model data needs too."""

    def list_objects_v2(self, *, Bucket: str, Prefix: str, ContinuationToken: str = "") -> Mapping[str, Any]:  # noqa: N803 boto3's names
        """List a thousand objects."""


class ModelDataNotFoundError(LocalError):
    """There is no object at the given location, or S3 denies reading it."""


@dataclass(frozen=True)
class S3Location:
    """A bucket and a key, or a prefix of keys, which may be empty."""

    bucket: str
    key: str

    @classmethod
    def from_url(cls, url: str, *, is_prefix: bool = False) -> S3Location:
        """Read an `s3://bucket/key` URL.

        Args:
            url: the URL.
            is_prefix: take it for a prefix of keys; `s3://bucket/` then stands for everything in the bucket.

        Raises:
            LocalError: the text is not such a URL.
        """
        bucket, slash, key = url.removeprefix("s3://").partition("/")
        if not url.startswith("s3://") or not bucket or not (key or (is_prefix and slash)):
            form = "s3://bucket/prefix/ or s3://bucket/" if is_prefix else "s3://bucket/key"
            raise LocalError(f"the model data URL {url!r} is not of the form {form}; correct ModelDataUrl")
        return cls(bucket, key)

    def child(self, name: str) -> S3Location:
        """The object `name` below this prefix; SageMaker puts the two together as they stand."""
        return S3Location(self.bucket, self.key + name)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def fetch_archive(store: ObjectStore, location: S3Location, target: Path) -> None:
    """Download a `.tar.gz` and unpack it into the new directory `target`, in one pass and without a copy on disk.

    Only files and directories are unpacked, within bounds: see `archives`. Whatever fails, `target` does not exist
    afterwards.

    Raises:
        ModelDataNotFoundError: there is no such object.
        LocalError: the object is not a complete `.tar.gz`, it contains something that is not allowed, or the disk is
            full.
    """
    body, size = _open_object(store, location)
    target.mkdir(parents=True)
    try:
        unpack(body, target, str(location), size)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    finally:
        body.close()


def fetch_files(store: ObjectStore, location: S3Location, target: Path) -> None:
    """Download everything below a prefix into the new directory `target`, as SageMaker does for `S3Prefix` and `None`.

    An object's path is what follows the prefix in its key. The rules for it are those of `CompressionType` in
    SageMaker's API model. Whatever fails, `target` does not exist afterwards.

    Raises:
        ModelDataNotFoundError: there is no such object.
        LocalError: a key makes no path, or the disk is full.
    """
    if not location.key.endswith("/"):
        raise LocalError(f"the S3Uri {location} of an S3Prefix does not end with a slash; add the slash")
    keys = _keys(store, location)
    if not keys:
        raise ModelDataNotFoundError(f"there is no object below {location}")
    target.mkdir(parents=True)
    try:
        for key in keys:
            _download(store, S3Location(location.bucket, key), target / _path(key, location))
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise LocalError(f"the model data {location} cannot be written to {target}: {error.strerror}") from error
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _keys(store: ObjectStore, location: S3Location) -> list[str]:
    if not isinstance(store, ListedStore):
        raise LocalError(f"the model data {location} is a prefix, but {type(store).__name__} cannot list objects")
    keys: list[str] = []
    more: dict[str, str] = {}
    while True:
        try:
            page = store.list_objects_v2(Bucket=location.bucket, Prefix=location.key, **more)
        except (BotoCoreError, ClientError) as error:
            raise LocalError(f"the model data {location} cannot be listed: {error}") from error
        keys += [each["Key"] for each in page.get("Contents", [])]
        if not page.get("IsTruncated"):
            return keys
        more = {"ContinuationToken": page["NextContinuationToken"]}


def _path(key: str, location: S3Location) -> str:
    path = key.removeprefix(location.key)
    if any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_NAME for part in path.split("/")):
        raise LocalError(
            f"the key of s3://{location.bucket}/{key} gives no path below /opt/ml/model; rename the object"
        )
    return path


def _download(store: ObjectStore, location: S3Location, target: Path) -> None:
    body, _ = _open_object(store, location)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(body, file, 1 << 20)
    except BotoCoreError as error:
        raise LocalError(f"the model data {location} cannot be read to its end: {error}") from error
    finally:
        body.close()


def use_cpu_instances(repository: Path) -> None:
    """Write KIND_CPU where the models of `repository` need a GPU, the only change that their configurations get.

    Triton rejects KIND_GPU on a machine without a GPU ("has kind KIND_GPU but no GPUs are available"). A file that is
    not a model configuration is left for the server to judge.
    """
    for path in sorted([*repository.glob("config.pbtxt"), *repository.glob("*/config.pbtxt")]):
        try:
            config = parse_model_config(path.read_bytes(), path=str(path))
        except ModelConfigError:
            continue
        groups = [group for group in config.instance_group if group.kind == group.KIND_GPU or group.gpus]
        for group in groups:
            group.kind = group.KIND_CPU
            del group.gpus[:]
        if groups:
            path.write_text(format_model_config(config), encoding="utf-8")


def move_deeper(repository: Path) -> None:
    """Move a model at the top of an archive one level deeper, where a server that is not in an image finds it.

    Triton recognises such a model by the literal path /opt/ml/models/<hash>/model, which is not ours. One level deeper
    the same model is found, and gets the same name.
    """
    if (repository / "config.pbtxt").exists():
        deeper = repository.with_name("model-at-top")
        repository.rename(deeper)
        repository.mkdir()
        deeper.rename(repository / "model")


def _open_object(store: ObjectStore, location: S3Location) -> tuple[IO[bytes], int | None]:
    """The content, and its size if the store returns that."""
    try:
        answer = store.get_object(Bucket=location.bucket, Key=location.key)
        return answer["Body"], answer.get("ContentLength")
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in ("NoSuchKey", "NoSuchBucket", "AccessDenied", "403", "404"):
            raise ModelDataNotFoundError(f"the model data {location} cannot be read: {code}") from error
        raise LocalError(f"the model data {location} cannot be read: {error}") from error
    except BotoCoreError as error:
        raise LocalError(f"the model data {location} cannot be read: {error}") from error
