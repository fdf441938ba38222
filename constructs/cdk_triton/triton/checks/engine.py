"""How rules are declared and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, cast, get_args, overload

from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.checks.documentation import Documentation
from cdk_triton.triton.environment import ContainerEnvironment
from cdk_triton.triton.findings import Finding, Severity
from cdk_triton.triton.repository import Mode, Model, ModelRepository, Platform, RepositoryFile

if TYPE_CHECKING:
    from pathlib import Path

Contents = TypeVar("Contents")
Derived = TypeVar("Derived")

Need = Literal["platform", "preflight"]
"""What a rule may wait for."""

__all__ = [
    "CRASH",
    "Check",
    "LeftOut",
    "Need",
    "Problem",
    "Report",
    "Rule",
    "documented_rules",
    "per_check",
    "rule",
    "rule_of",
    "rules",
    "run_checks",
]


@dataclass(frozen=True)
class Check:
    """What a rule may look at: a repository and how it will be served. No clock, no network; files by `contents`.

    The one exception has to be asked for: with `preflight` rules start TensorRT's parser, in a process of its own and
    with a limit of time, so that what they say depends on what is installed and, beyond the limit, on the machine.

    Attributes:
        repository: the repository.
        mode: `single` or `multi`.
        platform: release and instance, or None where nobody said.
        default_model: the default model that the user chose for a single-model container, or None.
        additional_models: what a single-model container loads besides.
        environment: the container's environment, or None where nobody said; the two attributes above come from it.
        preflight: whether to ask TensorRT's own parser, which takes seconds.

    Raises:
        ConfigurationError: the mode is neither `single` nor `multi`.
    """

    repository: ModelRepository
    mode: Mode = "single"
    platform: Platform | None = None
    default_model: str | None = None
    additional_models: tuple[str, ...] = ()
    environment: ContainerEnvironment | None = None
    preflight: bool = False

    def __post_init__(self) -> None:
        """Refuse a mode that does not exist."""
        if self.mode not in get_args(Mode):
            raise ConfigurationError(f"mode is 'single' or 'multi', got {self.mode!r}; choose one of them")

    @cached_property
    def entry(self) -> Model | None:
        """The model that callers will talk to, or None where that is open."""
        if self.mode == "single" and self.default_model is not None:
            return self.repository.model(self.default_model)
        return self.repository.entry_model(self.mode)

    @cached_property
    def loaded_models(self) -> tuple[Model, ...]:
        """The models that the server would load, as far as files tell: every one of them where the entry model is open.

        The server runs with explicit model control: it loads the entry model, the steps of an ensemble, and what it
        is told besides. Rules about one model look at these, because a directory that is not loaded does no harm.
        """
        entry = self.entry
        if entry is None or any(model.is_ensemble and model.config is None for model in self.repository.models):
            return self._recognisable_models
        names = dict.fromkeys((entry.name, *self.additional_models))
        pending = list(names)
        for name in pending:  # grows while we walk
            model = self.repository.model(name)
            new = [step for step in model.graph.model_names if step not in names] if model is not None else []
            names.update(dict.fromkeys(new))
            pending += new
            if model is not None and model.is_ensemble and not all(map(self.repository.model, model.graph.model_names)):
                return self._recognisable_models  # a misspelt step: any model may be the one that is meant
        return tuple(model for model in self.repository.models if model.name in names)

    @property
    def _recognisable_models(self) -> tuple[Model, ...]:
        models = self.repository.models
        return tuple(model for model in models if model.is_recognisable) or models  # not `scripts/` and the like

    def contents(self, read: Callable[[Path], Contents], file: RepositoryFile) -> Contents:
        """What `read` makes of a file: read once, and only if a rule asks.

        The readers stand in `cdk_triton.triton.contents`; a rule itself opens nothing.
        """
        key = (read, file.path)
        if key not in self._contents:
            self._contents[key] = read(file.source)
        return cast(Contents, self._contents[key])

    @cached_property
    def _contents(self) -> dict[object, object]:
        return {}

    @cached_property
    def _derived(self) -> dict[object, object]:
        return {}

    def is_renamed(self, model: Model) -> bool:
        """Whether the server calls the model by another name than its directory's: a multi-model endpoint's entry."""
        return self.mode == "multi" and model is self.entry


@overload
def per_check(derive: Callable[[Check], Iterator[Derived]]) -> Callable[[Check], tuple[Derived, ...]]: ...


@overload
def per_check(derive: Callable[[Check], Derived]) -> Callable[[Check], Derived]: ...


def per_check(derive: Callable[[Check], object]) -> Callable[[Check], object]:
    """Make a function compute what it says of a check for the first rule that asks, and keep it for the others.

    What an iterator yields is kept as a tuple.
    """

    @wraps(derive)
    def kept(check: Check) -> object:
        if derive not in check._derived:
            found = derive(check)
            check._derived[derive] = tuple(found) if isinstance(found, Iterator) else found
        return check._derived[derive]

    return kept


@dataclass(frozen=True)
class Problem:
    """What a rule found: a `Finding` without the rule's own code and severity.

    Attributes:
        path: the file or directory, relative to the repository.
        message: what was found, with its value, and what the server would do.
        mend: what to do.
        field: the field of the file, or "".
        line: the line of the file, where no field tells it.
    """

    path: object
    message: str
    mend: str
    field: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        code: stable, and never reused; its hundreds say what it is about (see the package's own docstring).
        severity: of all its findings.
        title: the fault, in one line.
        source: where the rule comes from, as a link to the code or page that enforces it; "" for the engine's own.
        modes: the modes that it is about.
        applies: whether it is about a platform; a rule that has one is left out where no platform is given.
        asks_parser: whether it needs TensorRT's own parser, and is left out where nobody asked for a preflight.
        function: what it does; its docstring is the rule's documentation.
    """

    code: str
    severity: Severity
    title: str
    source: str
    modes: tuple[Mode, ...]
    applies: Callable[[Platform], bool] | None
    asks_parser: bool
    function: Callable[[Check], Iterator[Problem]]

    @cached_property
    def documentation(self) -> Documentation:
        """What the docstring says."""
        return Documentation.from_docstring(self.function.__doc__ or "")

    @property
    def condition(self) -> str:
        """When the rule runs, as a sentence."""
        kind = "For single-model and multi-model endpoints"
        if self.modes == ("single",):
            kind = "For single-model endpoints"
        elif self.modes == ("multi",):
            kind = "For multi-model endpoints (`--mode multi`)"
        if self.applies is not None:
            kind += ", where the platform is said (`--platform`)"
        if self.asks_parser:
            kind += ", where TensorRT's parser is asked (`--preflight`)"
        return f"{kind}."

    def is_about(self, check: Check) -> bool:
        """Whether the rule has anything to say about this mode and platform."""
        if check.mode not in self.modes or self.lacks(check) is not None:
            return False
        return self.applies is None or (check.platform is not None and self.applies(check.platform))

    def lacks(self, check: Check) -> Need | None:
        """What is missing, where the rule is about the mode and left out for that only."""
        if check.mode not in self.modes:
            return None
        if self.applies is not None and check.platform is None:
            return "platform"
        return "preflight" if self.asks_parser and not check.preflight else None


class LeftOut(NamedTuple):
    """A rule that did not run because of something that was not said, or not asked for."""

    rule: Rule
    needs: Need


@dataclass(frozen=True)
class Report:
    """What came out of all rules.

    Attributes:
        findings: each once: errors first, then by path, code and field.
        acknowledged: the warnings that the repository's `acknowledgements` answer, in the same order.
        left_out: the rules that would have needed a platform or a preflight; what they look for is not known to be
            absent.
    """

    findings: tuple[Finding, ...]
    acknowledged: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...]


def _crash(check: Check) -> Iterator[Problem]:
    """A rule of cdk-triton stopped with an exception instead of an answer.

    The other rules have run, and what they found is reported. What the broken rule looks for is not known to be absent.
    Nothing in the repository has to be changed: report the fault together with the `config.pbtxt` files.
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
"""Stands for the engine itself: what is reported when a rule crashes. It never runs."""

_RULES: dict[str, Rule] = {}


def rule(
    code: str,
    severity: Severity,
    title: str,
    *,
    source: str,
    modes: tuple[Mode, ...] = ("single", "multi"),
    applies: Callable[[Platform], bool] | None = None,
    asks_parser: bool = False,
) -> Callable[[Callable[[Check], Iterator[Problem]]], Callable[[Check], Iterator[Problem]]]:
    """Make a function a rule; the parameters are the attributes of `Rule`.

    Raises:
        ValueError: the code is taken.
    """

    def register(function: Callable[[Check], Iterator[Problem]]) -> Callable[[Check], Iterator[Problem]]:
        if code in _RULES or code == CRASH.code:
            raise ValueError(f"the rule code {code} is taken twice")
        _RULES[code] = Rule(code, severity, title, source, modes, applies, asks_parser, function)
        return function

    return register


def rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    return tuple(_RULES[code] for code in sorted(_RULES))


def documented_rules() -> tuple[Rule, ...]:
    """Every rule and the engine's own code: whatever a finding can carry, by code."""
    return (CRASH, *rules())


def rule_of(code: str) -> Rule:
    """The rule of a code.

    Raises:
        ConfigurationError: there is none.
    """
    known = {each.code: each for each in documented_rules()}
    if code not in known:
        close = get_close_matches(code.upper(), known, n=2, cutoff=0.7)
        meant = f" (did you mean {' or '.join(close)}?)" if close else ""
        raise ConfigurationError(f"there is no rule {code!r}{meant}; `cdk-triton explain` lists all of them")
    return known[code]


def run_checks(check: Check) -> Report:
    """Run every rule that is about this mode and platform; a rule that crashes is a finding itself."""
    found = {finding for each in rules() for finding in _run(each, check)}
    ordered = sorted(found, key=lambda f: (f.severity, f.path, f.code, f.field, f.message))
    acknowledgements = check.repository.acknowledgements
    return Report(
        tuple(finding for finding in ordered if finding.code not in acknowledgements),
        tuple(finding for finding in ordered if finding.code in acknowledgements),
        tuple(LeftOut(each, need) for each in rules() if (need := each.lacks(check)) is not None),
    )


def _run(each: Rule, check: Check) -> Iterator[Finding]:
    try:
        if each.is_about(check):
            for problem in each.function(check):
                path = str(problem.path)
                yield Finding(
                    each.code, each.severity, path, problem.field, problem.message, problem.mend, problem.line
                )
    except Exception as error:  # whatever it is: the other rules still have something to say
        yield Finding(
            CRASH.code,
            CRASH.severity,
            ".",
            "",
            f"the rule {each.code} ({each.title}) failed with {type(error).__name__}: {error}",
            "report it to cdk-triton with the repository's config.pbtxt files",
        )
