"""Explicit lock files: what is read, and what is wrong with which line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdk_triton.artifacts.recipes.conda_lock import LockedPackage, read_explicit_lock

if TYPE_CHECKING:
    from golden_messages import Messages


CHANNEL = "https://conda.anaconda.org/conda-forge"
MD5 = "0123456789abcdef" * 2
SHA256 = MD5 * 2
GOOD = f"{CHANNEL}/linux-64/python-3.12.4-h194c7f8_0_cpython.conda#{MD5}"

names = st.from_regex(r"[a-z0-9_][a-z0-9_.-]{0,12}[a-z0-9_]", fullmatch=True)
versions = st.from_regex(r"[0-9][0-9a-z._!+]{0,8}", fullmatch=True)
builds = st.from_regex(r"[a-z0-9_.]{1,10}", fullmatch=True)


@st.composite
def packages(draw: st.DrawFn) -> tuple[str, str, str, str, str]:
    """Name, version, URL, algorithm and digest of a package."""
    name, version = draw(names), draw(versions)
    subdir, ending = draw(st.sampled_from(["linux-64", "noarch"])), draw(st.sampled_from(["conda", "tar.bz2"]))
    algorithm, digits = draw(st.sampled_from([("md5", 32), ("sha256", 64)]))
    digest = f"{draw(st.integers(0, 16**digits - 1)):0{digits}x}"
    return name, version, f"{CHANNEL}/{subdir}/{name}-{version}-{draw(builds)}.{ending}", algorithm, digest


@settings(max_examples=50)
@given(
    st.lists(packages(), min_size=1, max_size=6, unique_by=lambda package: package[0]),
    st.lists(st.sampled_from(["", "# a comment", "# platform: linux-64", "  "]), max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_was_written_is_read(
    written: list[tuple[str, str, str, str, str]], others: list[str], end: str, has_prefix: bool
) -> None:
    prefix = "sha256:" if has_prefix else ""
    lines = [f"{url}#{prefix if kind == 'sha256' else ''}{digest}" for _, _, url, kind, digest in written]
    read, problems = read_explicit_lock(end.join([*others, "@EXPLICIT", *lines, *others]) + end)
    assert problems == ()
    assert [(each.name, each.version, each.url, each.algorithm, each.digest) for each in read] == written
    first = len(others) + 2
    assert [each.line for each in read] == list(range(first, first + len(written)))


@given(st.text(max_size=300))
def test_any_text_is_read_or_rejected(text: str) -> None:
    read, problems = read_explicit_lock(text)
    assert read or problems
    assert all(1 <= problem.line <= text.count("\n") + 1 for problem in problems)


@given(st.text(alphabet="htps:/@#%?&=.-_ab01\\ ", max_size=80))
def test_whatever_is_taken_has_a_hash_and_comes_by_https(line: str) -> None:
    for package in read_explicit_lock(f"@EXPLICIT\n{line}\n{GOOD}\n{line}.conda#{MD5}")[0]:
        assert package.url.startswith("https://")
        assert re.fullmatch(r"[0-9a-f]{32}|[0-9a-f]{64}", package.digest)


def test_a_package_says_what_it_is() -> None:
    (package,), _ = read_explicit_lock(f"# made by hand\n@EXPLICIT\n{GOOD}\n")
    url = GOOD.partition("#")[0]
    assert package == LockedPackage(3, url, "python", "3.12.4", "md5", MD5)


def one(line: str) -> str:
    """What is wrong with a line among good ones."""
    read, problems = read_explicit_lock(f"@EXPLICIT\n{GOOD}\n{line}\n")
    assert [package.name for package in read] == ["python"]
    (problem,) = problems
    assert problem.line == 3
    return str(problem)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("linux-64/numpy-2.0.0-py312_0.conda", id="no hash"),
        pytest.param("linux-64/numpy-2.0.0-py312_0.conda#abc", id="no digest"),
        pytest.param(f"linux-64/numpy-2.0.0-py312_0.conda#sha1:{MD5}", id="sha1"),
        pytest.param(f"osx-arm64/numpy-2.0.0-py312_0.conda#{MD5}", id="osx-arm64"),
        pytest.param(f"linux-64/numpy-2.0.0-py312_0.zip#{MD5}", id="zip"),
        pytest.param(f"linux-64/numpy-2.0.0.conda#{MD5}", id="no build"),
        pytest.param(f"linux-64/numpy-2.0.0-py312_0.conda?x=1#{MD5}", id="query"),
    ],
)
def test_a_package_of_the_channel_that_cannot_be_used(messages: Messages, line: str) -> None:
    messages.record("LockFileProblem", one(f"{CHANNEL}/{line}"))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f"http://conda.example/linux-64/numpy-2.0.0-py312_0.conda#{MD5}", id="http"),
        pytest.param(f"file:///tmp/linux-64/numpy-2.0.0-py312_0.conda#{MD5}", id="file"),
        pytest.param("numpy=2.0", id="a requirement"),
        pytest.param(GOOD, id="twice"),
        pytest.param(f"# pip numpy @ https://pypi.example/numpy.whl --hash=sha256:{SHA256}", id="pip"),
        pytest.param("# platform: osx-64", id="osx-64"),
        pytest.param("# no URL for: numpy-2.0.0-py312_0", id="no URL"),
    ],
)
def test_a_line_that_locks_nothing(messages: Messages, line: str) -> None:
    messages.record("LockFileProblem", one(line))


@pytest.mark.parametrize(
    "line",
    [
        f"https://user:hush-hush@conda.example/linux-64/numpy-2.0.0-py312_0.conda#{MD5}",
        f"https://conda.anaconda.org/t/hush-hush/private/linux-64/numpy-2.0.0-py312_0.conda#{MD5}",
    ],
    ids=["a user", "a token"],
)
def test_a_secret_in_a_url_is_rejected_and_not_repeated(messages: Messages, line: str) -> None:
    said = one(line)
    messages.record("LockFileProblem", said)
    assert "hush" not in said


@pytest.mark.parametrize(
    "text", [pytest.param("numpy\npandas\n", id="no @EXPLICIT"), pytest.param("@EXPLICIT\n", id="no package")]
)
def test_a_file_without_explicit_is_none(messages: Messages, text: str) -> None:
    (problem,) = read_explicit_lock(text)[1]
    assert problem.line == 1
    messages.record("LockFileProblem", str(problem))
