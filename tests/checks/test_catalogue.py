"""Where rules come from: the modules of this library, and installed distributions of others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton.checks import rules

if TYPE_CHECKING:
    from golden_messages import Messages


RULES = '''
from collections.abc import Iterator

from cdk_triton.checks import CheckContext, Problem, Severity, rule


@rule("{code}", Severity.WARNING, "a model has no owner", source="https://wiki.acme.example/triton")
def owner_missing(context: CheckContext) -> Iterator[Problem]:
    """A model's configuration has no parameter `owner`."""
    for model in context.loaded_models:
        if model.config is not None and "owner" not in model.config.parameters:
            yield Problem(model.config_path, f"{{model.name!r}} has no owner", "add the parameter owner", "parameters")
'''


@dataclass(frozen=True)
class Machine:
    """An interpreter with this library, and a directory of its path for installed distributions."""

    site: Path
    repository: Path

    def install(self, code: str = "XACME01", *, site: Path | None = None, source: str = RULES) -> None:
        """Put a distribution with one rule on the path, as an installer does."""
        site = site or self.site
        (site / "acme_triton").mkdir(parents=True)
        (site / "acme_triton" / "__init__.py").touch()
        (site / "acme_triton" / "rules.py").write_text(source.format(code=code))
        info = site / "acme_triton-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-triton\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[cdk_triton.rules]\nacme = acme_triton.rules\n")

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command; `python -m` puts the current directory on the path."""
        return self.python("-m", "cdk_triton", *arguments, cwd=cwd)

    def python(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd or self.site.parent,
            env={**os.environ, "PYTHONPATH": str(self.site), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def codes(self, *options: str, cwd: Path | None = None) -> list[str]:
        done = self.run("validate", str(self.repository), "--format", "json", *options, cwd=cwd)
        assert done.returncode in (0, 1), done.stderr
        return [finding["code"] for finding in json.loads(done.stdout)["findings"]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    model = tmp_path / "models" / "echo"
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.py").write_text("class TritonPythonModel:\n    def execute(self, requests): ...\n")
    (model / "config.pbtxt").write_text(
        'backend: "python" input { name: "x" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "y" data_type: TYPE_FP32 dims: 4 }\n'
    )
    (tmp_path / "site").mkdir()
    return Machine(tmp_path / "site", tmp_path / "models")


@pytest.mark.slow
def test_a_rule_of_an_installed_distribution_is_one_of_the_rules(machine: Machine) -> None:
    assert machine.codes() == []
    machine.install()
    assert machine.codes() == ["XACME01"]
    assert machine.codes("--ignore", "X") == []
    listed = [line for line in machine.run("explain").stdout.splitlines() if not line.startswith("cdk-triton:")]
    assert listed[-1] == "XACME01  warning  a model has no owner"
    assert len(listed) == len(rules()) + 3  # a rule that crashes, what cannot be read, and this one
    told = machine.run("explain", "xacme01").stdout
    assert "acme_triton/rules.py:7" in told
    assert "https://wiki.acme.example/triton" in told


@pytest.mark.slow
def test_it_can_be_acknowledged(machine: Machine) -> None:
    machine.install()
    (machine.repository / "cdk-triton.toml").write_text('[acknowledge]\nXACME01 = "the team is being founded"\n')
    assert machine.codes() == []


def test_nothing_in_the_repository_under_check_is_loaded(machine: Machine) -> None:
    marker = machine.site.parent / "loaded"
    machine.install(site=machine.repository, source=f"open({str(marker)!r}, 'w')\n")
    machine.codes(cwd=machine.repository)
    assert not marker.exists()


@pytest.mark.slow
def test_a_module_in_the_current_directory_does_not_take_the_place_of_an_installed_one(machine: Machine) -> None:
    marker = machine.site.parent / "loaded"
    machine.install()
    (machine.repository / "acme_triton").mkdir()
    for module in ("__init__.py", "rules.py"):
        (machine.repository / "acme_triton" / module).write_text(f"open({str(marker)!r}, 'w')\n")
    assert "XACME01" in machine.codes(cwd=machine.repository)
    assert not marker.exists()


@pytest.mark.slow
def test_the_reason_is_the_same_when_the_rules_are_asked_for_again(machine: Machine) -> None:
    machine.install(source=f"{RULES}\nimport acme_utilities\n")
    program = """
from cdk_triton.checks import rules
for _ in range(2):
    try:
        rules()
    except Exception as error:
        print(error)
"""
    done = machine.python("-c", program)
    first, second = done.stdout.splitlines()
    assert first == second
    assert "No module named 'acme_utilities'" in first


@pytest.mark.parametrize(
    ("code", "source"),
    [
        pytest.param("CT999", RULES, id="a code of the library"),
        pytest.param("X1", RULES, id="too few digits"),
        pytest.param("XACME01", "import acme_utilities\n", id="a missing module"),
    ],
)
def test_a_distribution_whose_rules_cannot_be_loaded_is_one_sentence(
    messages: Messages, machine: Machine, code: str, source: str
) -> None:
    machine.install(code, source=source)
    done = machine.run("validate", str(machine.repository))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    messages.record("cdk-triton validate", done.stderr.rstrip("\n"))


@pytest.mark.slow
def test_a_crash_of_such_a_rule_is_reported_to_its_maintainers(messages: Messages, machine: Machine) -> None:
    machine.install(source=RULES.replace("for model in", "1 / 0\n    for model in"))
    done = machine.run("validate", str(machine.repository))
    lines = [line for line in done.stdout.splitlines() if "XACME01" in line or "acme_triton" in line]
    assert "ZeroDivisionError: division by zero" in lines[0]
    messages.record("cdk-triton validate", "\n".join(lines))
