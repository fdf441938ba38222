"""The bucket's layout: a key that was written is read again, and the guide shows the same tree."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.protocol import layout

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]*", fullmatch=True)
artifact_keys = st.text("0123456789abcdef", min_size=64, max_size=64)
paths = st.text(min_size=1)


@given(names, artifact_keys, paths, artifact_keys)
def test_the_objects_of_an_artifact_are_read_as_they_were_written(
    repository: str, key: str, path: str, rehearsal: str
) -> None:
    written = {
        layout.archive_key(repository, key): layout.ARCHIVE,
        layout.kept_sources_key(repository, key): layout.SOURCES,
        layout.manifest_key(repository, key): layout.MANIFEST,
        layout.files_prefix(repository, key) + path: layout.FILES + path,
        layout.pass_key(repository, key, rehearsal): f"{layout.REHEARSALS}{rehearsal}.json",
        layout.kept_golden_key(repository, key, rehearsal): f"{layout.REHEARSALS}{rehearsal}.zip",
    }
    for object_key, file in written.items():
        assert layout.parse_artifact_object(object_key) == (repository, key, file)
        assert object_key.startswith(layout.artifact_prefix(repository, key))
        assert object_key.startswith(layout.archive_prefix(repository))


@given(names, names, names, artifact_keys)
def test_the_objects_of_a_fleet_are_read_as_they_were_written(
    fleet: str, platform: str, ensemble: str, source: str
) -> None:
    prefix, target = layout.fleet_prefix(fleet, platform), layout.target_model(ensemble, source)

    assert layout.parse_fleet_object(prefix + target) == (fleet, platform, target)
    assert layout.parse_fleet_object(layout.index_key(fleet, platform)) == (fleet, platform, layout.INDEX)
    assert prefix.startswith(layout.fleet_prefix(fleet))


@given(artifact_keys)
def test_a_lock_is_read_as_it_was_written(key: str) -> None:
    assert layout.parse_lock_key(layout.lock_key(key)) == key


KEY = "0" * 64


@pytest.mark.parametrize(
    "object_key",
    [
        f"artifacts/text/{KEY}/",
        f"artifacts/text/{KEY}/files/",
        f"artifacts/text/{KEY}/model.tar.gz.tmp",
        f"artifacts/text/{KEY}/rehearsals/{KEY[1:]}.json",
        f"artifacts/text/{KEY}/rehearsals/nested/{KEY}.json",
        f"artifacts/text/{KEY[1:]}/model.tar.gz",
        f"artifacts/text/nested/{KEY}/model.tar.gz",
        "fleets/fleet/index.json",
        "fleets/fleet/25.09-a10g/nested/index.json",
        f"staging/locks/{KEY[1:]}.json",
        f"staging/{KEY}.json",
        f"other/artifacts/text/{KEY}/model.tar.gz",
    ],
)
def test_what_has_another_place_is_no_object_of_the_layout(object_key: str) -> None:
    assert layout.parse_artifact_object(object_key) is None
    assert layout.parse_fleet_object(object_key) is None
    assert layout.parse_lock_key(object_key) is None


def tree_of(text: str) -> list[str]:
    """The lines of the tree of a text, with single spaces."""
    lines = (re.sub(r"\s+", " ", line.strip()) for line in text.splitlines())
    return [line for line in lines if re.match(r"(artifacts|fleets|staging)/(<|locks/)", line)]


def test_the_tree_has_every_place_that_the_module_makes() -> None:
    artifact, platform, build = ("<repository>", "<artifact key>"), "<release>-<gpu>", "<build id>"
    places = [re.split(r" (?![^<]*>)", line)[0] for line in tree_of(inspect.getdoc(layout) or "")]

    assert places == [
        layout.archive_key(*artifact),
        layout.files_prefix(*artifact) + "<path>",
        layout.kept_sources_key(*artifact),
        layout.manifest_key(*artifact),
        layout.pass_key(*artifact, "<rehearsal key>"),
        layout.kept_golden_key(*artifact, "<rehearsal key>"),
        layout.fleet_prefix("<fleet>", platform) + layout.target_model("<ensemble>", "<source10>"),
        layout.index_key("<fleet>", platform),
        layout.build_inputs_prefix(build),
        layout.build_outputs_prefix(build),
        layout.build_state_key(build),
        layout.lock_key("<key>"),
    ]
