"""Golden requests in `cdk-triton.toml`: what is read, and what is rejected with a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.errors import ConfigurationError, RepositoryError
from cdk_triton.triton import ModelRepository
from cdk_triton.triton.rehearsal import GoldenRequest, Rehearsal, Tolerance

if TYPE_CHECKING:
    from golden_messages import Messages


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "models/model/1").mkdir(parents=True)
    (tmp_path / "models/model/1/model.py").touch()
    (tmp_path / "models/golden").mkdir()
    (tmp_path / "models/golden/one.json").write_text("{}")
    return tmp_path / "models"


def test_golden_files_are_not_a_model(root: Path) -> None:
    assert [model.name for model in ModelRepository.from_directory(root).models] == ["model"]
    (root / "golden/1").mkdir()
    assert [model.name for model in ModelRepository.from_directory(root).models] == ["golden", "model"]


def test_requests_of_the_file_are_read(root: Path) -> None:
    (root / "cdk-triton.toml").write_text(
        "[rehearsal]\nload_timeout = 30\nmax_p99_milliseconds = 50\nconcurrency = 4\n"
        'environment = { TABLE = "prices" }\n'
        '[[rehearsal.requests]]\nrequest = "golden/one.json"\nexpect = "a.npz"\ntolerance = { absolute = 0.5 }\n'
        '[[rehearsal.requests]]\nrequest = "golden/two.npz"\nlabel = "cat"\n'
    )
    first = GoldenRequest("golden/one.json", "a.npz", tolerance=Tolerance(0.5, 0.0))
    expected = Rehearsal(
        [first, GoldenRequest("golden/two.npz", label="cat")],
        load_timeout=30,
        max_p99_milliseconds=50,
        concurrency=4,
        environment={"TABLE": "prices"},
    )
    assert ModelRepository.from_directory(root).rehearsal == expected


def test_the_argument_takes_precedence_over_the_file(root: Path) -> None:
    (root / "cdk-triton.toml").write_text('[[rehearsal.requests]]\nrequest = "golden/one.json"\n')
    given = Rehearsal([GoldenRequest("golden/two.json")])
    assert ModelRepository.from_directory(root, rehearsal=given).rehearsal is given


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("rehearsal = 1", id="no table"),
        pytest.param("[rehearsal]", id="no requests"),
        pytest.param('[rehearsal]\nrequests = "a.json"', id="no list"),
        pytest.param("[rehearsal]\ntimeout = 1", id="an unknown key"),
        pytest.param('[[rehearsal.requests]]\nexpect = "a.npz"', id="no request"),
        pytest.param(
            '[[rehearsal.requests]]\nrequest = "a"\ntolerance = 0.1\nexpect = "b"', id="a number as tolerance"
        ),
        pytest.param(
            '[[rehearsal.requests]]\nrequest = "a"\n[[rehearsal.requests]]\nrequest = "b"\nexpekt = "c"',
            id="an unknown key in the second request",
        ),
        pytest.param('[[rehearsal.requests]]\nrequest = "a"\nexpect = "b"\ncosine = 2', id="no cosine"),
        pytest.param('[rehearsal]\nload_timeout = 0\n[[rehearsal.requests]]\nrequest = "a"', id="no time"),
    ],
)
def test_a_table_that_cannot_be_used(messages: Messages, root: Path, text: str) -> None:
    (root / "cdk-triton.toml").write_text(text)
    with messages.raises(RepositoryError):
        ModelRepository.from_directory(root)


@pytest.mark.parametrize(
    "options",
    [
        {"expect": "a.npz", "top1": True, "cosine": 0.0},
        {"cosine": 0.0},
        {"expect": "a.npz", "cosine": 2},
        {"expect": "a.npz", "label": "cat"},
        {"label": ""},
    ],
)
def test_comparisons_that_contradict(messages: Messages, options: dict[str, Any]) -> None:
    with messages.raises(ConfigurationError):
        GoldenRequest("a.json", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"load_timeout": 3601},
        {"max_load_seconds": "60"},
        {"max_gpu_memory_mib": float("inf")},
        {"max_p99_milliseconds": 0},
        {"concurrency": 0},
        {"concurrency": 2.0},
        {"concurrency": 65},
        {"environment": "A=b"},
        {"environment": {"SAGEMAKER_MULTI_MODEL": "true"}},
        {"environment": {"TABLE": "${Token[TOKEN.7]}"}},
    ],
)
def test_limits_that_no_rehearsal_can_keep(messages: Messages, options: dict[str, Any]) -> None:
    with messages.raises(ConfigurationError):
        Rehearsal([GoldenRequest("a.json")], **options)


def test_a_rehearsal_of_something_else_is_rejected(messages: Messages, root: Path) -> None:
    with messages.raises(ConfigurationError):
        ModelRepository.from_directory(root, rehearsal=[GoldenRequest("a.json")])  # type: ignore[arg-type]
