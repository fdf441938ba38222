"""What the readers of files' contents find, without loading what is heavy."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import onnx.helper
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.onnx_models.reader.file import ExternalData, OnnxFile, OnnxTensor, onnx_file
from cdk_triton.python_models.reader.packed_environment import PackedEnvironment, packed_environment
from cdk_triton.python_models.reader.source import NotJudged, SyntaxFault, python_source
from cdk_triton.tensorrt_models.reader.plan import PlanFile, tensorrt_plan
from cdk_triton.triton.unreadable import Unreadable

if TYPE_CHECKING:
    from golden_messages import Messages


MIB = 2**20


def assert_unreadable(messages: Messages, read: object) -> None:
    """Record why a file is not readable."""
    assert isinstance(read, Unreadable)
    messages.record("Unreadable", read.reason)


class TestOnnx:
    def test_tells_what_the_file_says(self, tmp_path: Path) -> None:
        file = tmp_path / "model.onnx"
        file.write_bytes(
            onnx.parser.parse_model(
                '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>'
                "model (int64[N, T] ids, float[4] scale, string[?] text) => (float[N, 384] OUT, seq(float[N]) MORE)"
                '<float[4] scale = {1, 2, 3, 4}, float[384] W = ["location": "w.bin", "offset": "8", "length": "16"]>'
                "{ OUT = Foo(ids, W) }"
            ).SerializeToString()
        )
        assert onnx_file(file) == OnnxFile(
            ir_version=8,
            opsets={"": 17, "ai.onnx.ml": 3},
            inputs=(
                OnnxTensor("ids", "tensor", "INT64", ("N", "T")),
                OnnxTensor("text", "tensor", "STRING", (None,)),
            ),
            defaults=(OnnxTensor("scale", "tensor", "FP32", (4,)),),
            outputs=(OnnxTensor("OUT", "tensor", "FP32", ("N", 384)), OnnxTensor("MORE", "sequence", None, None)),
            external_data=(ExternalData("W", "w.bin", 24),),
        )

    def test_knows_every_type_of_onnx(self, tmp_path: Path) -> None:
        served = {"FLOAT": "FP32", "FLOAT16": "FP16", "DOUBLE": "FP64", "BFLOAT16": "BF16"}
        for name, number in onnx.TensorProto.DataType.items():
            if name == "UNDEFINED":
                continue
            value = onnx.helper.make_tensor_value_info("x", number, [1])
            graph = onnx.helper.make_graph([], "graph", [value], [])
            file = tmp_path / f"{name}.onnx"
            file.write_bytes(onnx.helper.make_model(graph).SerializeToString())
            read = onnx_file(file)
            assert isinstance(read, OnnxFile)
            (tensor,) = read.inputs
            known = name in ("STRING", "BOOL") or name.lstrip("U") in ("INT8", "INT16", "INT32", "INT64")
            assert tensor.data_type == served.get(name, name if known else None)

    def test_finds_weights_in_a_branch_and_in_a_constant(self, tmp_path: Path) -> None:
        def elsewhere(name: str) -> onnx.TensorProto:
            tensor = onnx.TensorProto(name=name, data_type=1, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
            tensor.external_data.add(key="location", value=f"{name}.bin")
            return tensor

        branch = onnx.helper.make_graph([], "then", [], [], initializer=[elsewhere("inner")])
        nodes = [
            onnx.helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
            onnx.helper.make_node("Constant", [], ["z"], value=elsewhere("constant"), doc_string="x" * 10_000),
        ]
        graph = onnx.helper.make_graph(nodes, "graph", [], [])
        file = tmp_path / "model.onnx"
        file.write_bytes(onnx.helper.make_model(graph).SerializeToString())
        read = onnx_file(file)
        assert isinstance(read, OnnxFile)
        assert {external.location for external in read.external_data} == {"inner.bin", "constant.bin"}

    def test_reads_a_file_of_two_gigabytes_in_little_memory_and_time(self, tmp_path: Path) -> None:
        file = tmp_path / "model.onnx"
        weights = 2_000_000_000
        # The file is sparse: nobody writes the weights either.
        tensor = onnx.TensorProto(name="W", data_type=1, dims=[weights // 4]).SerializeToString()
        tensor += b"\x4a" + _varint(weights)
        small = onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17]> model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }'
        )
        graph = small.graph.SerializeToString()
        small.ClearField("graph")
        initializer = b"\x2a" + _varint(len(tensor) + weights) + tensor
        head = small.SerializeToString() + b"\x3a" + _varint(len(graph) + len(initializer) + weights)
        with file.open("wb") as target:
            target.write(head + initializer)
            target.seek(weights, io.SEEK_CUR)
            target.write(graph)
        program = (
            "import resource, sys; from pathlib import Path\n"
            "from cdk_triton.onnx_models.reader.file import onnx_file\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "read = onnx_file(Path(sys.argv[1]))\n"
            "assert [tensor.name for tensor in read.outputs] == ['OUT'], read\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
            "print(*(name for name in sys.modules if name.partition('.')[0] in ('onnx', 'numpy')))"
        )
        done = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
        kibibytes, modules = done.stdout.splitlines()
        assert int(kibibytes) < 20 * 1024
        assert modules == "", "the reader needs the messages of onnx, not the package"

    def test_reads_what_the_package_reads_that_was_imported_before(self, tmp_path: Path) -> None:
        assert "onnx" in sys.modules
        file = tmp_path / "model.onnx"
        file.write_bytes(onnx.helper.make_model(onnx.helper.make_graph([], "graph", [], [])).SerializeToString())
        assert isinstance(onnx_file(file), OnnxFile)

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b"hello world", id="no protobuf"),
            pytest.param(b"\x08\x08", id="no graph"),
            pytest.param(b"\x3a\xff\xff\xff\xff\x0f", id="cut off"),
            pytest.param(b"\x3a\x84" + b"\x80" * 9 + b"\x00" + b"\x12\x02it", id="a length of eleven bytes"),
        ],
    )
    def test_says_why_it_is_not_readable(self, messages: Messages, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "model.onnx").write_bytes(content)
        assert_unreadable(messages, onnx_file(tmp_path / "model.onnx"))

    def test_a_file_above_the_limit_of_protobuf(self, messages: Messages, tmp_path: Path) -> None:
        with (tmp_path / "model.onnx").open("wb") as target:
            target.truncate(2**31)
        assert_unreadable(messages, onnx_file(tmp_path / "model.onnx"))

    @given(st.binary(max_size=200))
    def test_any_bytes_are_readable_or_not(self, tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
        file = tmp_path_factory.getbasetemp() / "any.onnx"
        file.write_bytes(content)
        assert isinstance(onnx_file(file), OnnxFile | Unreadable)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


class TestPackedEnvironment:
    @staticmethod
    def pack(path: Path, members: dict[str, bytes], compress: Callable[[bytes], bytes] = gzip.compress) -> Path:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        path.write_bytes(compress(buffer.getvalue()))
        return path

    def test_tells_the_python(self, tmp_path: Path) -> None:
        members = {"bin/python3.12": b"", "lib/python3.12/os.py": b"", "bin/activate": b""}
        found = packed_environment(self.pack(tmp_path / "env.tar.gz", members))
        assert found == PackedEnvironment(python="3.12", has_activate=True, top="")

    def test_reads_no_further_than_necessary(self, tmp_path: Path) -> None:
        noise = random.Random(1).randbytes(8 * MIB)
        members = {"conda-meta/python-3.10.14-h955ad1f_1.json": b"", "lib/big": noise, "bin/activate": b""}
        archive = self.pack(tmp_path / "env.tar.gz", members)
        archive.write_bytes(archive.read_bytes()[: 4 * MIB])  # what is behind is not looked at
        assert packed_environment(archive) == PackedEnvironment(python="3.10", has_activate=True, top="")

    def test_names_the_directory_that_holds_everything(self, tmp_path: Path) -> None:
        archive = self.pack(tmp_path / "env.tar.gz", {"env/bin/activate": b"", "env/lib/python3.12/os.py": b""})
        assert packed_environment(archive) == PackedEnvironment(python=None, has_activate=False, top="env")

    @pytest.mark.parametrize("compress", [bz2.compress, lzma.compress])
    def test_other_compressions_are_none(
        self, messages: Messages, tmp_path: Path, compress: Callable[[bytes], bytes]
    ) -> None:
        archive = self.pack(tmp_path / "env.tar.gz", {"bin/activate": b""}, compress)
        assert_unreadable(messages, packed_environment(archive))

    def test_an_archive_without_compression_is_one(self, tmp_path: Path) -> None:
        archive = self.pack(tmp_path / "env.tar.gz", {"bin/activate": b"", "lib/python3.12/os.py": b""}, bytes)
        assert packed_environment(archive) == PackedEnvironment(python="3.12", has_activate=True, top="")

    def test_a_truncated_archive(self, messages: Messages, tmp_path: Path) -> None:
        archive = self.pack(tmp_path / "env.tar.gz", {"lib/big": random.Random(1).randbytes(MIB), "bin/activate": b""})
        archive.write_bytes(archive.read_bytes()[: MIB // 2])
        assert_unreadable(messages, packed_environment(archive))


def test_a_missing_file_is_unreadable(messages: Messages, tmp_path: Path) -> None:
    for read in (onnx_file, packed_environment, tensorrt_plan, python_source((3, 12))):
        assert_unreadable(messages, read(tmp_path / "none"))


def test_a_plan_is_looked_at_from_the_front(tmp_path: Path) -> None:
    file = tmp_path / "model.plan"
    file.write_bytes(b"ftrt" + bytes(100))
    assert tensorrt_plan(file) == PlanFile(begins_like_plan=True)


@given(st.text(max_size=60))
def test_any_source_is_judged_without_a_crash(tmp_path_factory: pytest.TempPathFactory, source: str) -> None:
    file = tmp_path_factory.getbasetemp() / "model.py"
    file.write_bytes(source.encode(errors="surrogatepass"))
    for version in ((3, 8), (3, 12)):
        python_source(version)(file)


@pytest.mark.parametrize("source", ["-" * 100_000 + "1", "x = " + "+".join("1" * 100_000), "x" + ".a" * 50_000])
def test_source_that_exhausts_the_compiler_is_a_fault_of_that_python(tmp_path: Path, source: str) -> None:
    (tmp_path / "model.py").write_text(source)
    fault = python_source(sys.version_info[:2])(tmp_path / "model.py")
    assert isinstance(fault, SyntaxFault)
    assert fault.error in ("RecursionError", "MemoryError")
    other = (3, 12) if sys.version_info < (3, 12) else (3, 8)
    assert isinstance(python_source(other)(tmp_path / "model.py"), NotJudged)
