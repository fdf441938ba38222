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


REPOSITORIES = {
    "a configuration": ("language/config.pbtxt",),
    "a version": ("language/1/model.onnx", "docs/README"),
    "settings": ("cdk-triton.toml", "one/model/config.pbtxt"),
    "a model whose name is a number": ("1/config.pbtxt",),
}


@pytest.mark.parametrize("files", REPOSITORIES.values(), ids=REPOSITORIES)
def test_a_directory_that_is_a_repository_itself_is_rejected(
    messages: Messages, root: Path, files: tuple[str, ...]
) -> None:
    write(root / "tenant-1", *files)
    with messages.raises(ConfigurationError) as raised:
        read_manifest(Path("tenant-1"))
    assert "tenant-1 is a model repository" in str(raised.value)


def test_a_directory_with_one_model_in_place_of_a_repository_is_a_manifest(root: Path) -> None:
    """The checks reject the model if it cannot be a repository, and the others go on."""
    write(root / "tenants", "one/model/1/model.onnx", "two/1/model.onnx")
    assert [each.ensemble for each in read_manifest(Path("tenants"))] == ["one", "two"]


def test_a_repository_with_a_model_whose_name_is_a_number_is_a_repository(root: Path) -> None:
    write(root / "tenants", "one/1/config.pbtxt", "two/1/config.pbtxt")
    assert [each.ensemble for each in read_manifest(Path("tenants"))] == ["one", "two"]


def test_a_file_may_list_repositories_that_are_a_model_each(root: Path) -> None:
    write(root / "tenants", "one/config.pbtxt", "two/config.pbtxt")
    (root / "rows.csv").write_text("ensemble,repository\none,tenants/one\ntwo,tenants/two\n")
    assert [each.ensemble for each in read_manifest(root / "rows.csv")] == ["one", "two"]


def write(directory: Path, *files: str) -> None:
    """Write empty files."""
    for file in files:
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).touch()


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
    "a path that is too long": ("m.csv", f"{HEAD}acme,{'x' * 5_000}\n", "line 2"),
    "no repository": ("m.csv", f"{HEAD}acme,\n", "line 2"),
    "an ensemble twice": ("m.csv", f"{HEAD}acme,tenants/one\nacme,tenants/two\n", "line 3"),
    "several faults": ("m.csv", f"{HEAD}a/b,tenants/one\nacme,none\n", "line 3"),
    "not JSON": ("m.json", '[\n{"ensemble": }]', "line 2"),
    "not a list": ("m.json", "{}", "not a list"),
    "lists in lists": ("m.json", "[" * 100_000, "nests"),
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
