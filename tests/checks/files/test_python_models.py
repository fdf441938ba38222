"""The rules CT140 to CT146: whether the Python backend can run a model's source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

EXECUTE = "    def execute(self, requests): return []\n"
CLASS = "class TritonPythonModel:\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(CLASS + EXECUTE, id="the least"),
        pytest.param(CLASS + "    async def execute(self, requests): return []", id="a coroutine"),
        pytest.param(CLASS + "    def execute(self, requests, *, log=None): return []", id="a default"),
        pytest.param(CLASS + "    def execute(*args): return []", id="any number"),
        pytest.param(CLASS + "    @traced\n    def execute(self): return []", id="a decorator may do anything"),
        pytest.param(CLASS + "    execute = run", id="assigned"),
        pytest.param("from shared import Base\nclass TritonPythonModel(Base): pass", id="inherited"),
        pytest.param("from shared import TritonPythonModel", id="imported"),
        pytest.param("from shared import Model as TritonPythonModel", id="imported under the name"),
        pytest.param("from shared import *", id="everything imported"),
        pytest.param("TritonPythonModel = make()", id="made"),
        pytest.param("globals()['TritonPythonModel'] = object", id="made in a roundabout way"),
        pytest.param("class Model: pass\nlocals()['Triton' + 'PythonModel'] = Model", id="made with locals"),
        pytest.param("class Model: pass\nvars()['TritonPythonModel'] = Model", id="made with vars"),
        pytest.param("import sys\nsetattr(sys.modules[__name__], 'TritonPythonModel', object)", id="made with setattr"),
        pytest.param("import shared\ndef __getattr__(name): return getattr(shared, name)", id="made when asked for"),
        pytest.param("with shared.make() as TritonPythonModel: pass", id="made by a statement with a body"),
        pytest.param(
            CLASS + "    def initialize(self, args): self.execute = self._gpu if args else self._cpu",
            id="a method of the instance",
        ),
        pytest.param(
            CLASS + "    def initialize(self, args): setattr(self, 'exe' + 'cute', print)",
            id="an attribute of some name",
        ),
        pytest.param(
            CLASS + "    def execute(self): pass\nTritonPythonModel.execute = lambda self, requests: []",
            id="a method that is replaced",
        ),
        pytest.param(f"if True:\n    {CLASS}        def execute(self, requests): return []", id="in a condition"),
        pytest.param(
            CLASS
            + "    limit: int = 3\n    @staticmethod\n    def auto_complete_config(config): return config\n"
            + "    def initialize(self, args): pass\n    def finalize(self): pass\n"
            + EXECUTE,
            id="all methods",
        ),
        pytest.param(CLASS + EXECUTE + r"    pattern = '\d'", id="what is only a warning"),
        pytest.param("\ufeff# -*- coding: utf-8 -*-\n" + CLASS + EXECUTE, id="a byte order mark"),
    ],
)
def test_sound(write: Write, source: str) -> None:
    assert write({"preprocess/1/model.py": source}).check() == ()


@pytest.mark.parametrize(
    ("source", "code"),
    [
        pytest.param("class TritonPythonModel\n    pass", "CT140", id="CT140 a syntax error"),
        pytest.param("import numpy", "CT142", id="CT142 no class"),
        pytest.param(CLASS + "    limit = 3", "CT143", id="CT143 no execute"),
        pytest.param(CLASS + "    def execute(requests): return []", "CT144", id="CT144 execute without self"),
        pytest.param(
            CLASS + EXECUTE + "    def initialize(self): pass", "CT144", id="CT144 initialize without arguments"
        ),
        pytest.param(
            CLASS + EXECUTE + "    def auto_complete_config(self, config): return config",
            "CT144",
            id="CT144 auto_complete_config that is not static",
        ),
        pytest.param(
            CLASS + EXECUTE + "    def __init__(self, *, path): pass",
            "CT144",
            id="CT144 a constructor with an argument",
        ),
    ],
)
def test_faults(messages: Messages, write: Write, source: str, code: str) -> None:
    findings = write({"preprocess/1/model.py": source}).check()
    assert messages.of(findings) == [(code, "preprocess/1/model.py", "")]


MATCH = CLASS + "    def execute(self, requests):\n        match requests:\n            case []: return []"


@pytest.mark.parametrize(("release", "codes"), [("23.03", ["CT141"]), ("23.05", []), ("25.09", []), (None, [])])
def test_syntax_of_a_newer_python(write: Write, release: str | None, codes: list[str]) -> None:
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = write({"preprocess/1/model.py": MATCH}).check(platform=platform)
    assert [finding.code for finding in findings if finding.code.startswith("CT14")] == codes


def test_syntax_that_only_the_containers_python_knows_is_not_judged(write: Write) -> None:
    source = "type Requests = list\n" + CLASS + EXECUTE
    assert write({"preprocess/1/model.py": source}).check() == ()


@pytest.mark.parametrize(
    ("name", "release", "codes"),
    [
        ("pre(process", None, ["CT145"]),
        ("pre process", None, []),
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
        ("my.model.py", ["CT146"]),
        ("../model.py", ["CT146"]),
        ("my-model.py", []),
        ("sub/model.py", []),
    ],
)
def test_names_of_the_file(messages: Messages, write: Write, file: str, codes: list[str]) -> None:
    config = ('backend: "python"', f'backend: "python" default_model_filename: "{file}"')
    found = write({"preprocess/config.pbtxt": config, f"preprocess/1/{file}": CLASS + EXECUTE}).check()
    assert messages.of(found) == [(code, "preprocess/config.pbtxt", "default_model_filename") for code in codes]
