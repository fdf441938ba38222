"""How rules are declared, chosen and run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.checks import (
    CRASH,
    UNREADABLE,
    CheckContext,
    Problem,
    Report,
    documented_rules,
    per_check,
    rule,
    rule_of,
    rules,
)
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import Finding, Severity
from sample_repositories import platform_with

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write


@pytest.fixture(autouse=True)
def no_other_rules(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """An empty registry, except for the tests about all rules."""
    if request.cls is not TestAllRules:
        rules()  # imports every rule, so that none enters the empty register
        monkeypatch.setattr("cdk_triton.checks.registry._RULES", {})


def test_a_rule_is_one_function(write: Write) -> None:
    @rule("X900", Severity.WARNING, "a model has a short name", source="https://example.com")
    def short_name(context: CheckContext) -> Iterator[Problem]:
        for model in context.loaded_models:
            if len(model.name) < 5:
                yield Problem(model.directory, f"{model.name!r} is short", "find a longer one", "name")

    (finding,) = write().check()
    assert finding == Finding("X900", Severity.WARNING, "bert", "name", "'bert' is short", "find a longer one")
    assert str(finding) == "bert name: warning X900: 'bert' is short; find a longer one"
    assert [each.function for each in rules()] == [short_name]


def test_findings_are_sorted_and_each_is_reported_once(write: Write) -> None:
    @rule("X901", Severity.WARNING, "first by code, last by severity", source="")
    def warn(context: CheckContext) -> Iterator[Problem]:
        yield Problem("a", "warning", "")

    @rule("X902", Severity.ERROR, "out of order and twice", source="")
    def err(context: CheckContext) -> Iterator[Problem]:
        for path, message in (("b", "x"), ("a", "z"), ("a", "y"), ("b", "x")):
            yield Problem(path, message, "")

    found = [(finding.code, finding.path, finding.message) for finding in write().check()]
    assert found == [("X902", "a", "y"), ("X902", "a", "z"), ("X902", "b", "x"), ("X901", "a", "warning")]


def test_a_rule_that_crashes_is_a_finding_and_the_others_run(messages: Messages, write: Write) -> None:
    @rule("X903", Severity.WARNING, "a broken rule", source="")
    def broken(context: CheckContext) -> Iterator[Problem]:
        yield Problem("a", "before", "")
        raise ZeroDivisionError("by nothing")

    @rule("X904", Severity.WARNING, "a rule", source="")
    def sound(context: CheckContext) -> Iterator[Problem]:
        yield Problem("b", "after", "")

    assert messages.of(write().check()) == [("CT001", ".", ""), ("X903", "a", ""), ("X904", "b", "")]


def test_a_list_of_what_no_rule_read_that_crashes_is_a_finding(
    messages: Messages, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(context: CheckContext) -> Iterator[object]:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("cdk_triton.checks.not_read.backend_files", broken)
    report = write().report()
    assert messages.of(report.findings) == [("CT001", ".", "")]
    assert report.not_read == ()


def test_a_rule_runs_for_its_modes_and_platforms_only(write: Write) -> None:
    def yields(context: CheckContext) -> Iterator[Problem]:
        yield Problem(".", "here", "")

    rule("X905", Severity.ERROR, "", source="", modes=("multi",))(yields)
    rule("X906", Severity.ERROR, "", source="", applies=lambda platform: platform.release == "25.09")(yields)
    repository = write()

    def codes(**arguments: object) -> list[str]:
        return [finding.code for finding in repository.check(**arguments)]  # type: ignore[arg-type]

    assert codes(mode="single") == []  # no platform: a rule about platforms is not about this check
    assert codes(mode="multi") == ["X905"]
    assert codes(mode="single", platform=platform_with("25.09")) == ["X906"]
    assert codes(mode="single", platform=platform_with("25.04")) == []


@pytest.mark.parametrize("code", ["X907"])
def test_a_code_cannot_be_taken_twice(messages: Messages, code: str) -> None:
    def nothing(context: CheckContext) -> Iterator[Problem]:
        return iter(())

    rule("X907", Severity.ERROR, "", source="")(nothing)
    with messages.raises(ValueError):
        rule(code, Severity.ERROR, "", source="")(nothing)


def test_an_unknown_mode_is_rejected(messages: Messages, write: Write) -> None:
    with messages.raises(ConfigurationError):
        write().check("serverless")  # type: ignore[arg-type]


@pytest.mark.parametrize("platform", ["ml.g5.xlarge", 25.09])
def test_what_is_no_platform_is_rejected(messages: Messages, write: Write, platform: Any) -> None:
    with messages.raises(ConfigurationError):
        write().check(platform=platform)


class TestLoadedModels:
    """Rules about one model look at what the server would load."""

    def names(self, context: CheckContext) -> list[str]:
        return [model.name for model in context.loaded_models]

    def test_the_entry_its_steps_and_what_is_loaded_besides(self, write: Write) -> None:
        repository = write({f"{name}/config.pbtxt": 'backend: "python"' for name in ("bls", "unused")})
        assert self.names(CheckContext(repository)) == ["bert", "ensemble", "preprocess"]
        assert self.names(CheckContext(repository, additional_models=("bls",))) == [
            "bert",
            "bls",
            "ensemble",
            "preprocess",
        ]
        assert self.names(CheckContext(repository, default_model="unused")) == ["unused"]
        assert self.names(CheckContext(repository, "multi", default_model="unused")) == [
            "bert",
            "ensemble",
            "preprocess",
        ]

    def test_everything_where_the_entry_is_open(self, write: Write) -> None:
        repository = write({"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None})
        assert self.names(CheckContext(repository)) == ["bert", "preprocess"]

    def test_everything_where_an_ensemble_cannot_be_read(self, write: Write) -> None:
        repository = write({"ensemble/config.pbtxt": 'platform: "ensemble" oops'})
        assert self.names(CheckContext(repository)) == ["bert", "ensemble", "preprocess"]


GOLDEN = Path(__file__).with_name("rules.txt")
# Where the rules may come from: the code that enforces them, and the words of those who run it.
SOURCES = re.compile(
    r"https://(github\.com/(triton-inference-server|NVIDIA|aws|onnx|microsoft/onnxruntime|pytorch/pytorch|openvinotoolkit|"
    r"dmlc|rapidsai|conda|git-lfs|pybind)/|docs\.python\.org/|docs\.aws\.amazon\.com/|docs\.nvidia\.com/|onnxruntime\.ai/docs/|onnx\.ai/|protobuf\.dev/)\S+"
)


def test_what_rules_derive_is_derived_once(write: Write) -> None:
    asked = []

    @per_check
    def names(context: CheckContext) -> Iterator[str]:
        asked.append(context)
        yield from (model.name for model in context.loaded_models)

    context = CheckContext(write())
    assert names(context) == names(context) == ("bert", "ensemble", "preprocess")
    assert asked == [context]


class TestAllRules:
    def test_codes_severities_and_titles_are_a_contract(self) -> None:
        """Nobody adds, drops, re-grades or renames a rule without looking here."""
        golden = GOLDEN.read_text(encoding="utf-8")
        now = "".join(f"{each.code} {each.severity} {each.title}\n" for each in rules())
        assert now == golden, "if that is meant, run `make generate`"

    def test_each_has_a_title_a_documentation_and_a_source(self) -> None:
        for each in rules():
            assert re.fullmatch(r"CT[1-8]\d\d", each.code)
            assert re.fullmatch(r"[\w.,' -]{20,90}", each.title), each.code
            documentation = each.documentation
            assert documentation.summary.endswith("."), f"{each.code}: a sentence"
            assert documentation.example, each.code
            assert documentation.instead, each.code
            assert SOURCES.fullmatch(each.source), each.source

    def test_no_two_have_the_same_title(self) -> None:
        assert len({each.title for each in rules()}) == len(rules())

    def test_a_rule_is_found_by_its_code(self, messages: Messages) -> None:
        assert [rule_of(each.code) for each in documented_rules()] == [CRASH, UNREADABLE, *rules()]
        with pytest.raises(ConfigurationError, match="'CT1"):  # the suggestions change with the rules
            rule_of("ct1100")
        with messages.raises(ConfigurationError):
            rule_of("none")


def test_a_rule_says_when_it_runs(messages: Messages) -> None:
    def nothing(context: CheckContext) -> Iterator[Problem]:
        return iter(())

    rule("X908", Severity.ERROR, "", source="")(nothing)
    rule("X909", Severity.ERROR, "", source="", modes=("multi",), applies=lambda _: True)(nothing)
    rule("X910", Severity.ERROR, "", source="", asks_parser=True)(nothing)
    conditions = [each.condition for each in rules()]
    assert ["--mode multi" in each for each in conditions] == [False, True, False]
    assert ["--platform" in each for each in conditions] == [False, True, False]
    assert ["--preflight" in each for each in conditions] == [False, False, True]
    for each in conditions:
        messages.record("cdk-triton explain", each)


def test_a_report_contains_the_skipped_rules(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(context: CheckContext) -> Iterator[Problem]:
        return iter(())

    for code, modes in (("X910", ("single",)), ("X911", ("multi",))):
        rule(code, Severity.ERROR, "", source="", modes=modes, applies=lambda _: True)(nothing)  # type: ignore[arg-type]
    rule("X912", Severity.WARNING, "", source="", asks_parser=True)(nothing)
    repository = write()

    def skipped(report: Report) -> list[tuple[str, str]]:
        return [(each.rule.code, each.requires) for each in report.skipped]

    assert skipped(repository.report()) == [("X910", "platform"), ("X912", "preflight")]
    assert skipped(repository.report("multi")) == [("X911", "platform"), ("X912", "preflight")]
    assert skipped(repository.report(platform=platform_with("25.09"))) == [("X912", "preflight")]
    monkeypatch.setattr("cdk_triton.tensorrt_models.reader.parser.is_installed", lambda: True)
    assert skipped(repository.report(platform=platform_with("25.09"), preflight=True)) == []
