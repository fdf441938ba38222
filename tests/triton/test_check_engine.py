"""How rules are declared, chosen and run."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import GpuInstance, gpu_instance
from cdk_triton.triton import Finding, Severity
from cdk_triton.triton.checks import Check, Problem, engine, rule, rules

if TYPE_CHECKING:
    from tests.triton.conftest import Write


@dataclass(frozen=True)
class Platform:
    release: str | None
    instance_type: str = "ml.g5.2xlarge"

    @property
    def instance(self) -> GpuInstance:
        return gpu_instance(self.instance_type)


@pytest.fixture(autouse=True)
def no_other_rules(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """An empty registry, except for the tests about all rules."""
    if request.cls is not TestAllRules:
        monkeypatch.setattr(engine, "_RULES", {})


def test_a_rule_is_one_function(write: Write) -> None:
    @rule("CT900", Severity.WARNING, "a model has a short name", source="https://example.com")
    def short_name(check: Check) -> Iterator[Problem]:
        for model in check.loaded_models:
            if len(model.name) < 5:
                yield Problem(model.directory, f"{model.name!r} is short", "find a longer one", "name")

    (finding,) = write().check()
    assert finding == Finding("CT900", Severity.WARNING, "bert", "name", "'bert' is short", "find a longer one")
    assert str(finding) == "bert name: warning CT900: 'bert' is short; find a longer one"
    assert [each.function for each in rules()] == [short_name]


def test_findings_are_sorted_and_each_is_reported_once(write: Write) -> None:
    @rule("CT901", Severity.WARNING, "first by code, last by severity", source="")
    def warn(check: Check) -> Iterator[Problem]:
        yield Problem("a", "warning", "")

    @rule("CT902", Severity.ERROR, "out of order and twice", source="")
    def err(check: Check) -> Iterator[Problem]:
        for path, message in (("b", "x"), ("a", "z"), ("a", "y"), ("b", "x")):
            yield Problem(path, message, "")

    found = [(finding.code, finding.path, finding.message) for finding in write().check()]
    assert found == [("CT902", "a", "y"), ("CT902", "a", "z"), ("CT902", "b", "x"), ("CT901", "a", "warning")]


def test_a_rule_that_crashes_is_a_finding_and_the_others_run(write: Write) -> None:
    @rule("CT903", Severity.WARNING, "a broken rule", source="")
    def broken(check: Check) -> Iterator[Problem]:
        yield Problem("a", "before", "")
        raise ZeroDivisionError("by nothing")

    @rule("CT904", Severity.WARNING, "a rule", source="")
    def sound(check: Check) -> Iterator[Problem]:
        yield Problem("b", "after", "")

    assert [str(finding) for finding in write().check()] == [
        ".: error CT001: the rule CT903 (a broken rule) failed with ZeroDivisionError: by nothing; report it to "
        "cdk-triton with the repository's config.pbtxt files",
        "a: warning CT903: before; ",
        "b: warning CT904: after; ",
    ]


def test_a_rule_runs_for_its_modes_and_platforms_only(write: Write) -> None:
    def yields(check: Check) -> Iterator[Problem]:
        yield Problem(".", "here", "")

    rule("CT905", Severity.ERROR, "", source="", modes=("multi",))(yields)
    rule("CT906", Severity.ERROR, "", source="", applies=lambda platform: platform.release == "25.09")(yields)
    repository = write()

    def codes(**arguments: object) -> list[str]:
        return [finding.code for finding in repository.check(**arguments)]  # type: ignore[arg-type]

    assert codes(mode="single") == []  # no platform: a rule about platforms is not about this check
    assert codes(mode="multi") == ["CT905"]
    assert codes(mode="single", platform=Platform("25.09")) == ["CT906"]
    assert codes(mode="single", platform=Platform("25.04")) == []


@pytest.mark.parametrize("code", ["CT907", "CT001"])
def test_a_code_cannot_be_taken_twice(code: str) -> None:
    def nothing(check: Check) -> Iterator[Problem]:
        return iter(())

    rule("CT907", Severity.ERROR, "", source="")(nothing)
    with pytest.raises(ValueError, match=f"the rule code {code} is taken twice"):
        rule(code, Severity.ERROR, "", source="")(nothing)


def test_an_unknown_mode_is_refused(write: Write) -> None:
    with pytest.raises(ConfigurationError, match="mode is 'single' or 'multi', got 'serverless'; choose one of them"):
        write().check("serverless")  # type: ignore[arg-type]


class TestLoadedModels:
    """Rules about one model look at what the server would load."""

    def names(self, check: Check) -> list[str]:
        return [model.name for model in check.loaded_models]

    def test_the_entry_its_steps_and_what_is_loaded_besides(self, write: Write) -> None:
        repository = write({f"{name}/config.pbtxt": 'backend: "python"' for name in ("bls", "unused")})
        assert self.names(Check(repository)) == ["bert", "ensemble", "preprocess"]
        assert self.names(Check(repository, additional_models=("bls",))) == ["bert", "bls", "ensemble", "preprocess"]
        assert self.names(Check(repository, default_model="unused")) == ["unused"]
        assert self.names(Check(repository, "multi", default_model="unused")) == ["bert", "ensemble", "preprocess"]

    def test_everything_where_the_entry_is_open(self, write: Write) -> None:
        repository = write({"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None})
        assert self.names(Check(repository)) == ["bert", "preprocess"]

    def test_everything_where_an_ensemble_cannot_be_read(self, write: Write) -> None:
        repository = write({"ensemble/config.pbtxt": 'platform: "ensemble" oops'})
        assert self.names(Check(repository)) == ["bert", "ensemble", "preprocess"]


class TestAllRules:
    def test_codes_and_severities_are_a_contract(self) -> None:
        """Nobody adds, drops or re-grades a rule without looking here."""
        errors = [
            *("CT101", "CT103", "CT104", "CT105"),
            *("CT110", "CT113"),
            *("CT301", "CT302", "CT303"),
            *("CT401", "CT402", "CT403", "CT404", "CT405"),
            *("CT501", "CT502", "CT503", "CT504", "CT506", "CT507"),
        ]
        warnings = ["CT102", "CT111", "CT112", "CT114", "CT304", "CT505"]
        assert {each.code: each.severity for each in rules()} == {
            **dict.fromkeys(errors, Severity.ERROR),
            **dict.fromkeys(warnings, Severity.WARNING),
        }

    def test_each_is_short_and_says_what_it_is_about(self) -> None:
        for each in rules():
            assert len(inspect.getsource(each.function).splitlines()) <= 60, each.code
            assert inspect.getdoc(each.function), each.code
            assert each.source.startswith("https://github.com/triton-inference-server/"), each.code
            assert re.fullmatch(r"[\w.' -]{20,90}", each.title), each.code

    def test_none_looks_at_files_clock_or_network(self) -> None:
        """A rule is a function of the repository that was read and of how it is served."""
        for each in rules():
            module = inspect.getmodule(each.function)
            assert module is not None
            tree = ast.parse(textwrap.dedent(inspect.getsource(module)))
            imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
            imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            forbidden = {"os", "pathlib", "time", "datetime", "socket", "subprocess", "random", "requests", "boto3"}
            assert not imported & forbidden, each.code
