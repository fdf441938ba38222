"""Whatever stands in a config.pbtxt: findings, within a second, and never a traceback.

    pytest tests/cli/test_validate_any_bytes.py --inputs 5000     more, and other ones each time

A second is the limit that is promised for a file; what is generated here takes at most a quarter of it on a quiet
machine. The tests allow three, because other work on the same cores counts too, and what is quadratic takes far longer.
(Protobuf's parser is Python: a megabyte with half a million numbers in it takes two seconds.)
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdk_triton.checks import rules
from cdk_triton.cli import main
from cdk_triton.errors import ModelConfigError
from cdk_triton.triton import Mode, ModelConfig, ModelRepository, format_model_config, parse_model_config

LIMIT = 3.0
"""Seconds of processor time. All of these take well under one on a quiet machine; what is quadratic takes minutes."""

MEGABYTE = 1 << 20
DENSE = 24_000
"""Bytes of a file that is nothing but small tokens; the largest that is published has a tenth of it."""

CONFIGS = [
    text.encode()
    for rule in rules()
    if rule.documentation.example
    for name, text in rule.documentation.repository().files.items()
    if name.endswith("config.pbtxt")
]

PARSED = []
for text in CONFIGS:
    with contextlib.suppress(ModelConfigError):
        PARSED.append(parse_model_config(text))

WORDS = [
    *(b"{ } < > [ ] ( ) : ; , . - + # \" ' \\ / @ ~".split()),
    *(b"\n \t \r \f \v \0 \x7f \xff \xc3 \xe2\x80\xa8 \xc2\xa0 \xef\xbb\xbf \xf0\x9f\x98\x80 \xed\xa0\x80".split(b" ")),
    *(b'"\\ \\x \\400 \\8 \\u12 \\U00110000 \\ud800 0x 0b1 0_0 08 1e999 -inf nan 1.5f 9223372036854775808'.split()),
    *(b"99999999999999999999999999 -9223372036854775808 true t TYPE_FP32 KIND_GPU KIND_CPU".split()),
    *(b'name: platform: "ensemble" backend: max_batch_size: input{ output{ step{ dims: data_type: shape:'.split()),
    *(b"ensemble_scheduling{ input_map{ output_map{ key: value: model_name: model_version:-1 reshape{".split()),
    *(b"dynamic_batching{ sequence_batching{ control_input{ control{ state{ oldest{ direct{ instance_group{".split()),
    *(b"gpus: count: version_policy{ specific{versions: latest{ model_warmup{ inputs{ batch_input{ [a.b/c.D]{".split()),
    *(b'parameters{ string_value: source_input: target_name: "a" "IN" "OUT" "other" "subject" "python"'.split()),
]

any_bytes = st.binary(max_size=2000)
any_words = st.lists(st.sampled_from(WORDS), max_size=200).map(b" ".join)


@st.composite
def spliced(draw: st.DrawFn) -> bytes:
    """A configuration with other bytes in some places, among them parts of other configurations."""
    content: bytes = draw(st.sampled_from(CONFIGS))
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        other = draw(st.sampled_from(CONFIGS))
        cut = draw(st.slices(len(other)))
        piece = draw(st.one_of(st.sampled_from(WORDS), st.binary(max_size=6), st.just(other[cut])))
        content = content[:start] + piece + content[min(end, start + 40) :]
    return content


@st.composite
def repeated(draw: st.DrawFn) -> bytes:
    """A few words, very often: deep blocks, many fields, and the like."""
    before, piece, after = (draw(st.lists(st.sampled_from(WORDS), max_size=most).map(b" ".join)) for most in (4, 6, 4))
    return before + piece * (DENSE // max(1, len(piece))) + after


@st.composite
def long_words(draw: st.DrawFn) -> bytes:
    """One word, comment or text of a megabyte, somewhere in a configuration."""
    content: bytes = draw(st.sampled_from(CONFIGS))
    at = draw(st.integers(0, len(content)))
    character = draw(st.sampled_from([b"a", b"9", b"-", b"#", b" ", b"_", b"\xc3\xa9", b"\xff", b"\0", b"\\n", b'\\"']))
    around = draw(
        st.sampled_from([(b"", b""), (b'"', b'"'), (b"'", b"'"), (b"# ", b"\n"), (b'name: "', b'"'), (b'"', b"")])
    )
    return content[:at] + around[0] + character * (MEGABYTE // len(character)) + around[1] + content[at:]


Place = tuple[Any, FieldDescriptor, int | None]

EXTREMES: Mapping[int, st.SearchStrategy[object]] = {
    FieldDescriptor.CPPTYPE_ENUM: st.integers(-3, 20) | st.sampled_from([-(2**31), 2**31 - 1]),
    FieldDescriptor.CPPTYPE_INT32: st.integers(-3, 3) | st.sampled_from([-(2**31), 2**31 - 1]),
    FieldDescriptor.CPPTYPE_INT64: st.integers(-3, 3) | st.sampled_from([-(2**63), 2**62, 2**63 - 1]),
    FieldDescriptor.CPPTYPE_UINT32: st.sampled_from([0, 1, 2**31, 2**32 - 1]),
    FieldDescriptor.CPPTYPE_UINT64: st.sampled_from([0, 1, 2**63, 2**64 - 1]),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(width=32),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_STRING: st.sampled_from(
        [
            "",
            "IN",
            "subject",
            "other",
            "..",
            "../x",
            "/",
            "a/../../b",
            "a" * 300,
            "é",
            "\x00",
            "\x7f",
            "1",
            "-1",
            "%s",
            "{0}",
        ]
    ),
}


def places(message: Any) -> Iterator[Place]:
    """Every value that is written in a message, and every field that is not."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            inner = [each for each in value.values() if isinstance(each, Message)]
        elif field.message_type is not None:
            inner = list(value) if field.is_repeated else [value] * message.HasField(field.name)
        else:
            inner = []
            yield from ((message, field, index) for index in (range(len(value) + 1) if field.is_repeated else (None,)))
        for each in inner:
            yield from places(each)


@st.composite
def other_values(draw: st.DrawFn) -> bytes:
    """A configuration with other values in some fields: numbers that enums do not name, extremes, odd texts."""
    config = draw(st.sampled_from(PARSED))
    changed = ModelConfig()
    changed.CopyFrom(config)
    for _ in range(draw(st.integers(1, 4))):
        message, field, index = draw(st.sampled_from(list(places(changed))))
        value = draw(EXTREMES[field.cpp_type])
        if index is None:
            setattr(message, field.name, value)
        elif index < len(getattr(message, field.name)):
            getattr(message, field.name)[index] = value
        else:
            getattr(message, field.name).append(value)
    return format_model_config(changed).encode()


contents = st.one_of(any_bytes, any_words, spliced(), spliced(), repeated(), long_words(), other_values())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose model `subject` gets its configuration from a test."""
    root = tmp_path_factory.mktemp("any") / "repository"
    (root / "other" / "1").mkdir(parents=True)
    (root / "subject" / "1").mkdir(parents=True)
    for name in ("other", "subject"):
        (root / name / "1" / "model.py").write_text("class TritonPythonModel:\n    def execute(self, requests): ...\n")
    tensors = 'input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }'
    (root / "other" / "config.pbtxt").write_text(f'backend: "python" {tensors}')
    return root


@contextlib.contextmanager
def within_the_limit(what: str) -> Iterator[None]:
    start = time.process_time()
    yield
    took = time.process_time() - start
    assert took < LIMIT, f"{what} took {took:.1f} s"


def check(root: Path, content: bytes) -> None:
    (root / "subject" / "config.pbtxt").write_bytes(content)
    modes: tuple[tuple[Mode, str | None], ...] = (("single", "subject"), ("multi", None))
    for mode, entry in modes:
        with within_the_limit(f"check({mode!r})"):
            findings = ModelRepository.from_directory(root).check(mode, default_model=entry)
        assert [finding for finding in findings if finding.code == "CT001"] == []


def validate(root: Path, content: bytes) -> None:
    (root / "subject" / "config.pbtxt").write_bytes(content)
    for form in ("text", "json", "sarif"):
        arguments = ["cdk-triton", "validate", str(root), "--default-model", "subject", "--format", form]
        out, err = io.StringIO(), io.StringIO()
        with (
            within_the_limit(form),
            mock.patch.object(sys, "argv", arguments),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as end,
        ):
            main()
        assert (end.value.code or 0) in (0, 1)
        assert err.getvalue() == ""
        if form != "text":
            json.loads(out.getvalue())


QUADRATIC = [
    b'"\\' * (MEGABYTE // 2),  # texts that do not end
    b"input{}" * (DENSE // 7),  # thousands of findings on one line
    b"input{" * (DENSE // 6),
    b'platform:"ensemble" ensemble_scheduling{' + b'step{model_name:"other" model_version:-1}' * 500 + b"}",
    b"a" * MEGABYTE,  # to be compared with every field
    b"platform:" + b" " * MEGABYTE,
    b"\n" * MEGABYTE + b"\xff",
]


def fuzz(request: pytest.FixtureRequest, usual: int) -> settings:
    count: int | None = request.config.getoption("inputs", default=None)
    return settings(
        max_examples=count or usual,
        derandomize=count is None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_checks_take_any_bytes(request: pytest.FixtureRequest, root: Path) -> None:
    @fuzz(request, 300)
    @given(contents)
    def run(content: bytes) -> None:
        check(root, content)

    run()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_checks_take_any_values(request: pytest.FixtureRequest, root: Path) -> None:
    @fuzz(request, 300)
    @given(other_values())
    def run(content: bytes) -> None:
        check(root, content)

    run()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_command_takes_any_bytes(request: pytest.FixtureRequest, root: Path) -> None:
    @fuzz(request, 100)
    @given(contents)
    def run(content: bytes) -> None:
        validate(root, content)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("content", QUADRATIC, ids=lambda content: content[:12].decode(errors="replace"))
def test_nothing_takes_quadratic_time(root: Path, content: bytes) -> None:
    check(root, content)
    validate(root, content)
