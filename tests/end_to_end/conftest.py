"""Every deployment of these tests is judged: do the policies of its templates allow the calls that were made?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.hosting.conftest import ROOT
from tests.permissions.demands import demands
from tests.permissions.judging import denials
from tests.permissions.recording import Recording, recorder

from cdk_triton_local import LocalAws

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.permissions.judging import Decision


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mixes", type=int, metavar="N", help="how many random mixes of faults are injected")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The seeds of random mixes of faults: always the same thirty, or other ones each time."""
    if "seed" in metafunc.fixturenames:
        mixes = metafunc.config.getoption("mixes", default=None)
        first = 0 if mixes is None else time.time_ns()
        metafunc.parametrize("seed", range(first, first + (mixes or 30)))


@pytest.fixture(scope="module", autouse=True)
def _judged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judge the calls of a file at its end, after its local AWS has stopped."""
    recordings: dict[str, Recording] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalAws, "on_call", recorder(recordings))
        yield
    found = [sentence for recording in recordings.values() for sentence in recording.faults]
    decisions: list[Decision] = []
    for account, recording in recordings.items():
        asked = list(recording.decisions.values())
        found += denials(asked, account)
        decisions += asked
    if _is_whole(request):
        file = request.path.relative_to(ROOT).as_posix()
        rows = [demand for demand in demands() if demand.made_by == file]
        found += [f"not called, but in demands.toml: {part}" for row in rows for part in row.unseen(decisions)]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def _is_whole(request: pytest.FixtureRequest) -> bool:
    """Whether all tests of the file have run and passed."""
    config = request.config
    return not (request.session.testsfailed or config.option.keyword or any("::" in each for each in config.args))
