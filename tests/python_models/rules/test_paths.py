"""The rules CT145, CT146, CT164 and CT165: names and paths of Python models."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

EXECUTE = "    def execute(self, requests): return []\n"
CLASS = "class TritonPythonModel:\n"


@pytest.mark.parametrize(
    ("name", "release", "codes"),
    [
        ("pre(process", None, ["CT145"]),
        ("pre process", None, ["CT165"]),
        ("{pre,process}", None, ["CT145"]),
        ("#preprocess", None, ["CT145"]),
        ("#preprocess", "25.04", ["CT145"]),
        ("pre#process", "25.04", []),
        ("pre[0]process", "25.04", []),
        ("pre[0]process", "25.09", ["CT145"]),
        ("prétraitement", None, ["CT165"]),
        ("prétraitement", "24.09", ["CT146"]),
        ("prétraitement", "25.04", []),
        ("pre process", "25.04", ["CT145"]),
        ("pre process", "25.09", []),
        ("pre~process", "25.04", []),
        ("pre~process", "25.09", ["CT145"]),
        ("pre.process-2", "25.09", []),
    ],
)
def test_names(write: Write, sound: dict[str, str], name: str, release: str | None, codes: list[str]) -> None:
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    base = {
        f"{name}/config.pbtxt": sound["preprocess/config.pbtxt"].replace('name: "preprocess"', ""),
        f"{name}/1/model.py": sound["preprocess/1/model.py"],
        **{path: text for path, text in sound.items() if not path.startswith("preprocess")},
    }
    change = {"ensemble/config.pbtxt": ('model_name: "preprocess"', f'model_name: "{name}"')}
    findings = write(change, base=base).check(platform=platform)
    assert [finding.code for finding in findings] == codes


@pytest.mark.parametrize(
    ("file", "codes"),
    [
        ("model.txt", ["CT146"]),
        ("1.py", ["CT146"]),
        ("./model.py", ["CT146"]),
        ("/model.py", ["CT146"]),
        ("sub/../model.py", ["CT146"]),
        ("sub.d/model.py", ["CT146"]),
        ("json/model.py", ["CT146"]),
        ("model.py/", ["CT146"]),
        ("my.model.py", ["CT146"]),
        ("../model.py", ["CT146"]),
        ("my-model.py", []),
        ("sub/model.py", []),
        (".py", []),
        ("#sub/~model.py", []),
    ],
)
def test_names_of_the_file(messages: Messages, write: Write, file: str, codes: list[str]) -> None:
    config = ('backend: "python"', f'backend: "python" default_model_filename: "{file}"')
    placed = {f"preprocess/1/{normpath(file.strip('/'))}": CLASS + EXECUTE}
    found = write({"preprocess/config.pbtxt": config, **placed}).check()
    assert messages.of(found) == [(code, "preprocess/config.pbtxt", "default_model_filename") for code in codes]


@pytest.mark.parametrize(
    ("file", "is_misread"),
    [
        ("my model.py", True),
        ("my$model.py", True),
        ("a{b,c}.py", True),
        ("a;b.py", True),
        ("a(b).py", True),
        ("a&b.py", True),
        ("a'b.py", True),
        ("a$.py", False),
        ("a{b}.py", False),
        ("a*b.py", False),
        ("a,b=c%d^e@f+g!h~i#j.py", False),
    ],
)
@pytest.mark.parametrize("release", ["24.09", "25.09", None])
def test_a_shell_reads_the_path_of_the_file(
    messages: Messages, write: Write, file: str, release: str | None, is_misread: bool
) -> None:
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    config = ('backend: "python"', f'backend: "python" default_model_filename: "{file}"')
    found = write({"preprocess/config.pbtxt": config, f"preprocess/1/{file}": CLASS + EXECUTE}).check(platform=platform)
    code = {"24.09": "CT164", "25.09": None, None: "CT165"}[release]
    expected = [(code, "preprocess/config.pbtxt", "default_model_filename")] if is_misread and code else []
    assert [place for place in messages.of(found) if place[0].startswith("CT1")] == expected


def test_a_pattern_that_matches_another_file(write: Write) -> None:
    config = ('backend: "python"', 'backend: "python" default_model_filename: "a*.py"')
    repository = write(
        {"preprocess/config.pbtxt": config, "preprocess/1/a*.py": CLASS + EXECUTE, "preprocess/1/ab.py": ""}
    )
    assert [finding.code for finding in repository.check()] == ["CT165"]


@pytest.mark.parametrize(
    ("release", "variables", "codes"),
    [
        ("24.09", {}, ["CT146"]),
        ("24.09", {"LC_ALL": "C.UTF-8"}, ["CT146"]),
        (None, {"PYTHONUTF8": "1"}, ["CT165"]),
        ("25.09", {}, []),
    ],
)
def test_a_locale_does_not_make_an_old_server_read_utf8(
    write: Write, release: str | None, variables: dict[str, str], codes: list[str]
) -> None:
    config = ('backend: "python"', 'backend: "python" default_model_filename: "modèle.py"')
    repository = write({"preprocess/config.pbtxt": config, "preprocess/1/modèle.py": CLASS + EXECUTE})
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    found = repository.check(platform=platform, environment=ContainerEnvironment(variables=variables))
    assert [finding.code for finding in found if finding.code.startswith("CT1")] == codes


def test_a_directory_in_the_place_of_the_file(messages: Messages, write: Write) -> None:
    found = write({"preprocess/1/model.py": None, "preprocess/1/model.py/x": ""}).check()
    assert messages.of(found) == [("CT146", "preprocess/1/model.py", "")]
