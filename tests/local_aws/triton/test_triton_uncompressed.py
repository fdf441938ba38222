"""Model data that is not compressed: a directory of what lies below a prefix, served by a real tritonserver."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local.triton.model_data import ModelDataNotFoundError, S3Location, fetch_files

if TYPE_CHECKING:
    from tests.local_aws.triton.conftest import Bench

    from golden_messages import Messages

PREFIX = S3Location("bucket", "a/files/")

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
instance_group { kind: KIND_GPU count: 1 }
"""
ADD_TWO = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", value + 2.0)]) for value in values]
"""


class Objects:
    """An S3 of these objects that lists one per page."""

    def __init__(self, *keys: str) -> None:
        self.keys = sorted(keys)

    def get_object(self, *, Bucket: str, Key: str) -> Any:  # noqa: N803 boto3's names
        return {"Body": io.BytesIO(Key.encode())}

    def list_objects_v2(self, *, Bucket: str, Prefix: str, ContinuationToken: str = "") -> Mapping[str, Any]:  # noqa: N803 boto3's names
        left = [key for key in self.keys if key.startswith(Prefix) and key > ContinuationToken]
        page = {"Contents": [{"Key": left[0]}]} if left else {}
        return {**page, "IsTruncated": len(left) > 1, "NextContinuationToken": left[0] if left else ""}


def test_every_object_below_the_prefix_arrives_at_the_rest_of_its_key(tmp_path: Path) -> None:
    store = Objects("a/files/m/config.pbtxt", "a/files/m/1/model.bin", "a/manifest.json", "b/files/m/config.pbtxt")

    fetch_files(store, PREFIX, tmp_path / "repository")

    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"repository/m/config.pbtxt", "repository/m/1/model.bin"}
    assert (tmp_path / "repository/m/1/model.bin").read_text() == "a/files/m/1/model.bin"


@pytest.mark.parametrize(
    "key",
    ["a/files/m//config.pbtxt", "a/files/../escape", "a/files/m/", f"a/files/{'x' * 256}"],
    ids=["empty name", "parent", "directory", "long name"],
)
def test_a_key_that_makes_no_path_is_rejected_and_leaves_nothing(messages: Messages, tmp_path: Path, key: str) -> None:
    with pytest.raises(LocalError) as rejected:
        fetch_files(Objects("a/files/ok", key), PREFIX, tmp_path / "repository")
    assert key in str(rejected.value)
    messages.record("LocalError", str(rejected.value).replace(key, "KEY"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_a_directory_has_to_be_is_rejected_and_leaves_nothing(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(LocalError):
        fetch_files(Objects("a/files/weights", "a/files/weights/part1"), PREFIX, tmp_path / "repository")
    assert list(tmp_path.iterdir()) == []


def test_a_prefix_without_objects_is_no_model_data(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(ModelDataNotFoundError):
        fetch_files(Objects(), PREFIX, tmp_path / "repository")


def test_a_prefix_has_to_end_with_a_slash(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(LocalError):
        fetch_files(Objects("a/files/m"), S3Location("bucket", "a/files"), tmp_path / "repository")


def test_an_endpoint_serves_the_files_as_they_are(new_bench: Callable[..., Bench]) -> None:
    bench = new_bench()
    bench.uncompressed("files", {"model/config.pbtxt": CONFIG, "model/1/model.py": ADD_TWO})

    assert bench.answer("files", 40.0) == [42.0]
