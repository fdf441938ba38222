"""Sentences that the project's prose rule forbids: the part of the rule that a program can see.

The rule stands in CONTRIBUTING.md. It holds for README, docs, docstrings, messages and the help of the command. What
was written before the rule is listed in tests/architecture/prose_baseline.txt. That list only shrinks: `make generate`
drops the sentences that were rewritten, and never adds one.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

__all__ = [
    "BASELINE",
    "LONG",
    "PRONOUN",
    "ROOT",
    "Fault",
    "all_faults",
    "faults_in",
    "faults_of_text",
    "known_faults",
    "long_sentences",
]

ROOT: Final = Path(__file__).parents[1]
BASELINE: Final = ROOT / "tests" / "architecture" / "prose_baseline.txt"
_FOLDERS = ("docs", "examples", "constructs", "lambda", "tools", "benchmarks", "model_assets")
_INIT = "constructs/cdk_triton/cli/init/files/*.md.txt"  # the pages of a project that `cdk-triton init` writes
_PLACES = ("*.md", "app.py", _INIT, *(f"{folder}/**/*.{ending}" for folder in _FOLDERS for ending in ("md", "py")))
_GENERATED, _INDEX = "docs/rules", "docs/rules.md"  # made of docstrings, which are looked at themselves

_TEXTS = (  # things that contain text, as regular expressions
    r"apps?|code|configurations?|constructs?|docs?|docstrings?|errors?|fields?|files?|it|messages?|names?|pages?|"
    r"paths?|recipes?|regions?|releases?|repositor(?:y|ies)|rules?|scripts?|stacks?|tables?|templates?|tests?|"
    r"values?|which"
)
_PARTS = (  # parts of an app, and the services and programs that it uses
    r"alarms?|archives?|AWS|backends?|boto3|botocore|buckets?|builders?|CloudFormation|CloudWatch|commands?|"
    r"components?|containers?|definitions?|deployments?|documents?|endpoints?|environments?|functions?|guides?|"
    r"handlers?|headers?|images?|instances?|jobs?|jsii|library|manifests?|models?|modules?|moto|networks?|objects?|"
    r"options?|parsers?|plans?|polic(?:y|ies)|profiles?|programs?|Python|references?|reports?|requests?|SageMaker|"
    r"schemas?|servers?|services?|sources?|steps?|stores?|synth|systems?|TensorRT|tokens?|Triton|types?|variants?|"
    r"warm-ups?"
)

PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    "begins without a subject": re.compile(r"^(What|Where|Who|Whoever|Whom|Of)\b(?!.*\?$)"),
    "a noun is denied by 'no' or 'none'": re.compile(
        r"(?<!there )\b(is|are|was|were) no (?!longer|more\b)|\b(is|are) none\b", re.I
    ),
    "'has not' for 'does not have'": re.compile(r"\bha(s|ve) not (?!been\b|\w+(ed|en|ne)\b)", re.I),
    "a rare word": re.compile(
        r"\b(mend(s|ed|ing)?|anew|besides|shall|whom|whoever|for want of|in the place of|such as are|"
        r"nobody (says?|said|knows?|tells?|told))\b",
        re.I,
    ),
    "'refuse' for 'reject'": re.compile(r"\brefus(e|es|ed|ing|als?)\b", re.I),
    "'leave out' for 'skip' or 'omit'": re.compile(r"\b(leaves?|left|leaving) (\w+ ){0,2}out\b", re.I),
    "a thing says, tells, asks or knows": re.compile(
        rf"\b({_TEXTS}|that|this) (says?|said|tells?|told|asks?|asked|knows?|knew)\b", re.I
    ),
    "a thing says, knows, wants or sees": re.compile(
        rf"\b({_TEXTS}|{_PARTS}) ((says|tells|asks|knows|wants|sees|speaks|hears|promises)\b|"
        r"(does|do|did|would|may|can|could|cannot|must) ((not|only|ever) )*(say|tell|know|want|see|speak)\b)",
        re.I,
    ),
}
"""Name of the fault → what shows it within one sentence."""

PRONOUN: Final = "an entry of Raises begins with 'it' or 'they'"
_PRONOUN = re.compile(r"Error: ((?:it|they) .*)")
LONG: Final = "a sentence of more than 32 words"
_MOST_WORDS = 32
_LIMITED = ("constructs", "lambda")  # the folders of the messages and of the public docstrings

_CODE = re.compile(r"```.*?```|`[^`]*`|^ {4,}.*$|<[^>]+>", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^(Args|Attributes|Limits|Raises|Returns|Yields):\n(?: {4}.*(?:\n|\Z)|\n)*", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(?! )(?:[*\w.]+(?:, [*\w.]+)*: )?", re.MULTILINE)  # up to its text
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+(?=[A-Z`*\[(])|\n\s*\n|\n\s*(?=[-*|#])")
_PAUSE = re.compile(r"(?<=[.!?;:])\s+")
_ITEM = r"(?:'[^']*'|\"[^\"]*\"|[^\s,;:]+(?: [^\s,;:]+){0,2})"  # a name, of three words at most
_LIST = re.compile(rf"(?:{_ITEM}, ){{3,}}(?:(?:and|or) )?{_ITEM}")
_QUOTED = re.compile(r"\"[^\"]*\"")
_FEWEST_WORDS = 3
_SHOWN = 90


class Fault(NamedTuple):
    """A sentence that breaks the rule.

    Attributes:
        kind: a name of `PATTERNS`, `LONG` or `PRONOUN`.
        sentence: its first characters.
    """

    kind: str
    sentence: str


def all_faults() -> Iterator[tuple[Path, Fault]]:
    """Every fault in the project, with the file that has it."""
    for path in sorted({path for place in _PLACES for path in ROOT.glob(place)}):
        if (
            path.is_file()
            and "vendor" not in path.parts  # a package of others, which a model brings
            and not path.is_relative_to(ROOT / _GENERATED)
            and path not in (ROOT / _INDEX, Path(__file__))
        ):
            inside = path.relative_to(ROOT)
            is_limited = path.suffix == ".py" and inside.parts[0] in _LIMITED
            for fault in chain(faults_in(path), long_sentences(path) if is_limited else ()):
                yield inside, fault


def known_faults() -> Counter[Fault]:
    """The faults that the list of old sentences allows, and how many of each."""
    lines = BASELINE.read_text(encoding="utf-8").splitlines() if BASELINE.exists() else []
    return Counter(Fault(kind, sentence) for kind, _, sentence in (line.partition(": ") for line in lines))


def faults_in(path: Path) -> Iterator[Fault]:
    """The faults of a file: a page of Markdown, or the texts of a Python file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from faults_of_text(text)
        return
    for literal in _literals(ast.parse(text)):
        docstring = inspect.cleandoc(literal)
        yield from faults_of_text(_plain(docstring))
        for section in _SECTION.finditer(docstring):
            if section[1] == "Raises":
                yield from (Fault(PRONOUN, entry[:_SHOWN]) for entry in _PRONOUN.findall(section[0]))


def long_sentences(path: Path) -> Iterator[Fault]:
    """The sentences of a Python file that have too many words. A colon or a semicolon ends one.

    A list of four names or more, and a quotation, count as a word: they cannot be split.
    """
    for literal in _literals(ast.parse(path.read_text(encoding="utf-8"))):
        for part in _SENTENCE.split(_CODE.sub("X", _plain(inspect.cleandoc(literal)))):
            for sentence in _PAUSE.split(" ".join(part.split())):
                if len(_LIST.sub("X", _QUOTED.sub("X", sentence)).split()) > _MOST_WORDS:
                    yield Fault(LONG, sentence[:_SHOWN])


def faults_of_text(text: str) -> Iterator[Fault]:
    """The faults of each sentence; code is not prose."""
    for part in _SENTENCE.split(_CODE.sub("X", text)):
        sentence = " ".join(part.split()).lstrip("#*|-> ")
        is_heading = part.lstrip().startswith("#")  # which may be a name, such as "Who may call"
        if len(sentence.split()) < _FEWEST_WORDS + is_heading:
            continue
        for kind, pattern in PATTERNS.items():
            if pattern.search(sentence):
                yield Fault(kind, sentence[:_SHOWN])


def _plain(docstring: str) -> str:
    """Return a docstring whose entries, such as those of Args, are paragraphs: they are indented, and are not code."""
    return _SECTION.sub(lambda section: re.sub(r"^ +", "", _ENTRY.sub("\n", section[0]), flags=re.MULTILINE), docstring)


def _literals(tree: ast.Module) -> Iterator[str]:
    """The texts of a program. A value in an f-string counts as a word."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value
