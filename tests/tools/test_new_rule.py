"""`python tools/new_rule.py`: the skeletons of a rule and of its test."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages


TOOL = Path(__file__).parents[2] / "tools" / "new_rule.py"
TITLE = "a model has two owners"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without any rule: the tool writes into the one that it lies in."""
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOL, tmp_path / "tools")
    return tmp_path


def new_rule(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "tools" / TOOL.name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_writes_a_module_with_the_rule_and_its_test(checkout: Path) -> None:
    done = new_rule(checkout, "CT119", "files", "owners", TITLE)
    assert done.returncode == 0, done.stderr
    rule = (checkout / "constructs/cdk_triton/checks/files/owners.py").read_text()
    test = (checkout / "tests/checks/files/test_owners.py").read_text()
    assert '"CT119"' in rule
    assert "def a_model_has_two_owners(each: ConfiguredModel)" in rule
    assert "def test_a_model_has_two_owners(messages: Messages, write: Write)" in test
    for path, text in (("owners.py", rule), ("test_owners.py", test)):
        compile(text, path, "exec")


def test_a_second_rule_follows_the_first_above_the_helpers(checkout: Path) -> None:
    module = checkout / "constructs/cdk_triton/checks/files/owners.py"
    new_rule(checkout, "CT109", "files", "owners", TITLE)
    module.write_text(module.read_text() + "\n\ndef _owners() -> None: ...\n")
    new_rule(checkout, "CT119", "files", "owners", "a model has three owners")
    rule = module.read_text()
    compile(rule, "owners.py", "exec")
    assert rule.count("from __future__") == 1
    assert rule.index('"CT109"') < rule.index('"CT119"') < rule.index("def _owners")


def test_a_rule_gives_an_error_or_a_warning(checkout: Path) -> None:
    new_rule(checkout, "CT109", "files", "owners", TITLE)
    new_rule(checkout, "CT119", "files", "owners", "a model has three owners", "--warning")
    rule = (checkout / "constructs/cdk_triton/checks/files/owners.py").read_text()
    assert re.findall(r"Severity\.(\w+)", rule) == ["ERROR", "WARNING"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "area", "package", "module"),
    [
        ("CT119", "files", "checks/files", "model_files"),
        ("CT399", "ensembles", "checks/ensembles", "queues"),
        ("CT119", "onnx_models", "onnx_models/rules", "models"),
        ("CT119", "python_models", "python_models/rules", "paths"),
        ("CT799", "tensorrt_models", "tensorrt_models/rules", "plans"),
    ],
)
def test_a_module_of_rules_takes_one_more(checkout: Path, code: str, area: str, package: str, module: str) -> None:
    rules, tests = f"constructs/cdk_triton/{package}/{module}.py", f"tests/{package}/test_{module}.py"
    for copied in (rules, tests):
        (checkout / copied).parent.mkdir(parents=True)
        shutil.copy(TOOL.parents[1] / copied, checkout / copied)
    done = new_rule(checkout, code, area, module, TITLE)
    assert done.returncode == 0, done.stderr
    assert all("a_model_has_two_owners" in (checkout / changed).read_text() for changed in (rules, tests))
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "--quiet", "."]
    done = subprocess.run(ruff, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("code", "area", "title"),
    [
        pytest.param("CT101", "files", TITLE, id="taken"),
        pytest.param("CT399", "files", TITLE, id="another area"),
        pytest.param("CT1", "files", TITLE, id="no code"),
        pytest.param("CT119", "files", "short", id="a short title"),
    ],
)
def test_what_cannot_be_a_rule_is_a_sentence(
    messages: Messages, checkout: Path, code: str, area: str, title: str
) -> None:
    done = new_rule(checkout, code, area, "owners", title)
    assert done.returncode == 2
    fault = re.sub(r"\.py:\d+", ".py:LINE", done.stderr.splitlines()[-1])
    messages.record("tools/new_rule.py", re.sub(r"CT\d+$", "CT000", fault))  # the next free code is another one soon
    assert not list((checkout / "constructs").rglob("*.py"))
