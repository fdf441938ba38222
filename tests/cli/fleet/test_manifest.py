"""Manifests of `cdk-triton fleet publish`: what they list, and what is said of a corrupt one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton.cli.fleet.manifest import Listed, read_manifest
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("one", "two", ".git"):
        (tmp_path / "tenants" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_directory_has_a_repository_in_each_of_its_directories(root: Path) -> None:
    (root / "tenants" / "README").touch()
    found = read_manifest(Path("tenants"))
    assert found == [Listed("one", Path("tenants/one")), Listed("two", Path("tenants/two"))]


ROWS = [("acme", "tenants/one"), ("globex", "tenants/two"), ("initech", "tenants/two")]
MANIFESTS = {
    "rows.csv": "ensemble,repository\n" + "".join(f"{name},{place}\n" for name, place in ROWS),
    "turned.csv": "repository,ensemble\r\n" + "".join(f'"{place}",{name}\r\n\r\n' for name, place in ROWS),
    "spreadsheet.csv": "\ufeffensemble,repository\n" + "".join(f"{name},{place}\n" for name, place in ROWS),
    "rows.json": json.dumps([{"ensemble": name, "repository": place} for name, place in ROWS]),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_file_lists_ensembles_and_repositories_relative_to_itself(root: Path, name: str) -> None:
    (root / name).write_text(MANIFESTS[name], encoding="utf-8", newline="")
    assert read_manifest(root / name) == [Listed(ensemble, root / place) for ensemble, place in ROWS]


HEAD = "ensemble,repository\n"
CORRUPT = {
    "a column too few": ("m.csv", f"{HEAD}acme,tenants/one\nglobex\n", "line 3"),
    "a column too many": ("m.csv", f"{HEAD}acme,tenants/one,more\n", "line 2"),
    "no header": ("m.csv", "acme,tenants/one\n", "line 1"),
    "a quotation that does not end": ("m.csv", f'{HEAD}acme,"tenants/one\n', "line 2"),
    "a name that is not one": ("m.csv", f"{HEAD}a/b,tenants/one\n", "line 2"),
    "a repository that is not there": ("m.csv", f"{HEAD}\nacme,tenants/none\n", "line 3"),
    "no repository": ("m.csv", f"{HEAD}acme,\n", "line 2"),
    "an ensemble twice": ("m.csv", f"{HEAD}acme,tenants/one\nacme,tenants/two\n", "line 3"),
    "several faults": ("m.csv", f"{HEAD}a/b,tenants/one\nacme,none\n", "line 3"),
    "not JSON": ("m.json", '[\n{"ensemble": }]', "line 2"),
    "not a list": ("m.json", "{}", "not a list"),
    "another name": ("m.json", '[{"ensemble": "acme", "path": "tenants/one"}]', "entry 1"),
    "a number": ("m.json", '[{"ensemble": 7, "repository": "tenants/one"}]', "entry 1"),
    "nothing": ("m.csv", HEAD, "no ensemble"),
    "no file": ("none.csv", None, "cannot be read"),
}


@pytest.mark.parametrize(("name", "text", "place"), CORRUPT.values(), ids=CORRUPT)
def test_a_corrupt_manifest_is_rejected_with_the_place(
    messages: Messages, root: Path, name: str, text: str | None, place: str
) -> None:
    if text is not None:
        (root / name).write_text(text)
    with messages.raises(ConfigurationError) as raised:
        read_manifest(Path(name))
    assert place in str(raised.value)


def test_other_bytes_than_utf_8_are_rejected_with_the_line(messages: Messages, root: Path) -> None:
    (root / "m.csv").write_bytes(b"ensemble,repository\nacme,tenants/one\ncaf\xe9,tenants/two\n")
    with messages.raises(ConfigurationError) as raised:
        read_manifest(Path("m.csv"))
    assert "line 3" in str(raised.value)
