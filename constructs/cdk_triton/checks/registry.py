"""The type of a rule, the problems that it reports, and the register in which each rule enters itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import unwrap
from typing import Final, Literal, TypeVar

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.documentation import Documentation
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.repository import Mode

__all__ = [
    "CRASH",
    "UNREADABLE",
    "Judge",
    "Need",
    "Problem",
    "Rule",
    "in_line",
    "registered_rules",
    "rule",
    "rules_about",
    "would_not_load",
]

Need = Literal["platform", "preflight"]
"""An input that some rules need, and that a user may omit."""

Subject = TypeVar("Subject")

_OUR_CODES: Final = re.compile(r"CT\d{3}")
_OTHER_CODES: Final = re.compile(r"X[A-Z]*\d{2,}")


@dataclass(frozen=True)
class Problem:
    """A result of a rule: a `Finding` without the rule's own code and severity.

    Attributes:
        path: the file or directory, relative to the repository.
        message: what was found, with its value, and what the server would do.
        fix: what to do.
        field: the field of the file, or "".
        line: the line of the file, counted from 1, if `field` does not determine it.
    """

    path: object
    message: str
    fix: str
    field: str = ""
    line: int | None = None


def would_not_load(model: Model, found: str, words: str, joint: str = ", so ") -> str:
    """The message about a fault for which the server does not load a model; `words` are the server's."""
    return f"{found}{joint}the server would not load {model.name!r}: {words}"


def in_line(path: object, line: int, does: str, fix: str) -> Problem:
    """A problem of a line of a file: what the line does, and what follows."""
    return Problem(path, f"line {line} {does}", fix, line=line)


Judge = Callable[[CheckContext], Iterator[Problem]]
"""The function of a rule."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        code: the stable code of the rule, never reused. This library's codes are `CT` and three digits (the package's
            docstring lists the hundreds). The codes of other distributions are `X`, optional capital letters, and two
            or more digits: `XACME01`.
        severity: the severity of all its findings.
        title: the fault, in one line.
        source: where the rule comes from, as a link to the code or page that enforces it; "" for `CRASH` and
            `UNREADABLE`.
        modes: the modes to which the rule applies: `single`, `multi` or both.
        applies: a function that returns whether the rule applies to a serving platform. Without a platform such a rule
            is skipped. None: the rule needs no platform.
        asks_parser: whether the rule needs TensorRT's own parser. Without `preflight` such a rule is skipped.
        function: the function that looks for the fault; its docstring is the rule's documentation.
        can_be_acknowledged: whether users may acknowledge the rule although it is an error: what it reports fails
            under a condition that only they know.
    """

    code: str
    severity: Severity
    title: str
    source: str
    modes: tuple[Mode, ...]
    applies: Callable[[ServingPlatform], bool] | None
    asks_parser: bool
    function: Judge
    can_be_acknowledged: bool = False

    @cached_property
    def documentation(self) -> Documentation:
        """The parts of the function's docstring."""
        return Documentation.from_docstring(self.function.__doc__ or "")

    @property
    def maintainer(self) -> str:
        """The top package that contains the rule.

        It is `cdk-triton` for this library's rules, otherwise the import name of another distribution's package.
        """
        return self.function.__module__.partition(".")[0].replace("cdk_triton", "cdk-triton")

    @property
    def defined_in(self) -> str:
        """The place of the function, as `path/to/module.py:line` below the directory of its top package."""
        return f"{self.function.__module__.replace('.', '/')}.py:{unwrap(self.function).__code__.co_firstlineno}"

    @property
    def condition(self) -> str:
        """The endpoints and options for which the rule runs, as a sentence."""
        kind = "For single-model and multi-model endpoints"
        if self.modes == ("single",):
            kind = "For single-model endpoints"
        elif self.modes == ("multi",):
            kind = "For multi-model endpoints (`--mode multi`)"
        if self.applies is not None:
            kind += ", if a serving platform is given (`--platform`)"
        if self.asks_parser:
            kind += ", if TensorRT's parser runs (`--preflight`)"
        return f"{kind}."

    def is_about(self, context: CheckContext) -> bool:
        """Whether the rule applies to this mode and platform. False if the rule needs a platform and none is given."""
        if context.mode not in self.modes:
            return False
        return self.applies is None or (context.platform is not None and self.applies(context.platform))

    def missing(self, context: CheckContext) -> Need | None:
        """The input that the rule needs and the user omitted.

        None if no input is missing, or if the rule does not apply to this mode.
        """
        if context.mode not in self.modes:
            return None
        if self.applies is not None and context.platform is None:
            return "platform"
        return "preflight" if self.asks_parser and not context.preflight else None


def _crash(context: CheckContext) -> Iterator[Problem]:
    """A rule stopped with an exception, so cdk-triton has no result for this rule.

    All other rules have run, and cdk-triton reports their findings. The repository may still have the fault that the
    stopped rule looks for. Do not change the repository. Report the exception, together with the `config.pbtxt` files,
    to the maintainer that the finding names.

    The exception may also come from the code that lists the parts that no rule read. All rules have then run, but this
    list is empty. With `--format json`, the finding also reports your own rules that cannot be loaded. In that case, no
    rule has run.
    """
    return iter(())


CRASH = Rule(
    "CT001",
    Severity.ERROR,
    "a rule of cdk-triton fails",
    "",
    ("single", "multi"),
    None,
    False,
    _crash,
)
"""The rule that a finding names if another rule crashes. `CRASH` itself never runs."""


def _unreadable(context: CheckContext) -> Iterator[Problem]:
    """The directory is missing, empty or unreadable, or contains a symbolic link to a missing path or out of it.

    No rule has run. `cdk-triton validate` ends with status 2 and prints the reason to stderr. With `--format json`, the
    command also prints this finding to stdout.
    """
    return iter(())


UNREADABLE = Rule(
    "CT002",
    Severity.ERROR,
    "the repository cannot be read",
    "",
    ("single", "multi"),
    None,
    False,
    _unreadable,
)
"""The rule that a finding names if the repository cannot be read. `UNREADABLE` itself never runs."""

_RULES: dict[str, Rule] = {}


def rule(
    code: str,
    severity: Severity,
    title: str,
    *,
    source: str,
    modes: tuple[Mode, ...] = ("single", "multi"),
    applies: Callable[[ServingPlatform], bool] | None = None,
    asks_parser: bool = False,
    can_be_acknowledged: bool = False,
) -> Callable[[Judge], Judge]:
    """Register the decorated function as a rule; the parameters are the attributes of `Rule`.

    Raises:
        ValueError: another rule has the code, or the code is outside the range of the function's package.
    """

    def register(function: Judge) -> Judge:
        codes = _OUR_CODES if function.__module__.startswith("cdk_triton.") else _OTHER_CODES
        if codes.fullmatch(code) is None:
            raise ValueError(f"the rule code {code!r} of {function.__module__} does not match {codes.pattern}")
        if code in _RULES or code in (CRASH.code, UNREADABLE.code):
            raise ValueError(f"two rules have the code {code}")
        _RULES[code] = Rule(code, severity, title, source, modes, applies, asks_parser, function, can_be_acknowledged)
        return function

    return register


def rules_about(
    subjects: Callable[[CheckContext], Iterable[Subject]],
) -> Callable[..., Callable[[Callable[[Subject], Iterator[Problem]]], Judge]]:
    """Return a decorator like `rule`, whose functions judge one of the subjects at a time.

    For example, `model_rule = rules_about(configured)` registers a function of one configured model:

        @model_rule("CT230", Severity.ERROR, "max_batch_size is negative", source=core(_UTILS, 1479, 1483))
        def negative_batch_size(each: ConfiguredModel) -> Iterator[Problem]:
    """

    def decorator(*arguments: object, **options: object) -> Callable[[Callable[[Subject], Iterator[Problem]]], Judge]:
        def register(function: Callable[[Subject], Iterator[Problem]]) -> Judge:
            @wraps(function)
            def judge(context: CheckContext) -> Iterator[Problem]:
                for subject in subjects(context):
                    yield from function(subject)

            return rule(*arguments, **options)(judge)  # type: ignore[arg-type]

        return register

    return decorator


def registered_rules() -> tuple[Rule, ...]:
    """The rules of the modules that are imported, by code; `cdk_triton.checks.catalogue` imports all of them."""
    return tuple(_RULES[code] for code in sorted(_RULES))
