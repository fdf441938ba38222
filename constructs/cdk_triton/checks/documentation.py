"""The documentation of a rule and of a construct's code, for the command, the guide and the tests.

That of a rule is its docstring, in parts.
"""

# A rule's docstring has a first line (what it looks for), paragraphs in Markdown (why it matters), and sections:
#
#     Example:
#         $ cdk-triton validate . --mode multi
#         # model/config.pbtxt
#         backend: "python"
#
#     Instead:
#         # model/config.pbtxt
#         ...
#
#     Limits:
#         Faults that the rule does not see.
#
# An example is a small repository: a comment that is nothing but a path begins a file. The `$` line is omitted if
# it would be `$ cdk-triton validate .`. A comment `# environment=ContainerEnvironment(...)` before the
# files is what a construct, or a call of `ModelRepository.check`, is given; the command has no option for it.
# `Instead` names only the files that differ from the example, and `# model/config.pbtxt is removed` says that one is no
# longer there. Both may omit the version directories of a model with all files in them: the tests add the directory
# `1` with the file of the backend. `Limits` is omitted if there are none. The tests build both: the example has
# findings of this rule and of no other, its fixed twin has no finding.

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from cdk_triton.triton.findings import Severity

__all__ = ["ConstructCode", "Documentation", "Example"]

_SECTION = re.compile(r"^(Example|Instead|Limits):\n((?:    .*\n|\n)+)", re.MULTILINE)
_FILE = re.compile(r"# ([\w.*\[\]-]+/[\w./$-]+|[\w-]+\.\w+)(?P<removed> is removed)?")
_COMMAND = "$ cdk-triton validate . "
_ENVIRONMENT = "# environment="


@dataclass(frozen=True)
class Example:
    """A small repository.

    Attributes:
        arguments: what follows `cdk-triton validate .` on the command line.
        files: path in the repository → content, as text.
        removed: the paths of files of the example that its fixed twin does not have.
        environment: the expression for the container's environment; "" if none is given.
    """

    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    environment: str = ""

    @classmethod
    def from_text(cls, text: str) -> Example:
        """Read a section of a docstring."""
        arguments: tuple[str, ...] = ()
        files: dict[str, list[str]] = {}
        removed: list[str] = []
        name = environment = ""
        for line in text.splitlines():
            if line.startswith(_COMMAND):
                arguments = tuple(shlex.split(line.removeprefix(_COMMAND)))
            elif line.startswith(_ENVIRONMENT):
                environment = line.removeprefix(_ENVIRONMENT)
            elif match := _FILE.fullmatch(line):
                name = match[1]
                if match["removed"]:
                    removed.append(name)
                else:
                    files[name] = []
            elif name in files:
                files[name].append(line)
        texts = {path: _text(lines) for path, lines in files.items()}
        return cls(arguments, texts, tuple(removed), environment)


@dataclass(frozen=True)
class Documentation:
    """The documentation of a rule; the rule itself has its code, severity and title.

    Attributes:
        summary: what the rule looks for, in one line.
        explanation: why it matters, in Markdown; "" if the summary is enough.
        example: the section as the docstring has it.
        instead: the section with the fixed example.
        limits: what the rule does not find; "" if there are no known limits.
    """

    summary: str
    explanation: str
    example: str
    instead: str
    limits: str

    @classmethod
    def from_docstring(cls, docstring: str) -> Documentation:
        """Take a docstring apart."""
        text = inspect.cleandoc(docstring) + "\n"
        sections = {name: inspect.cleandoc(body) for name, body in _SECTION.findall(text)}
        summary, _, explanation = _SECTION.sub("", text).partition("\n")
        return cls(
            summary,
            explanation.strip(),
            sections.get("Example", ""),
            sections.get("Instead", ""),
            sections.get("Limits", ""),
        )

    def markdown(self) -> str:
        """All of it as Markdown, without a heading."""
        parts = [self.summary, self.explanation]
        for heading, text in (("Example", self.example), ("Instead", self.instead)):
            parts.append(f"{heading}:\n\n```\n{text}\n```" if text else "")
        parts.append(f"Limits: {self.limits}" if self.limits else "")
        return "\n\n".join(part for part in parts if part)

    def repository(self) -> Example:
        """The repository of the example."""
        return Example.from_text(self.example)

    def fixed_repository(self) -> Example:
        """The repository of the example with the files of `Instead`."""
        wrong, right = self.repository(), Example.from_text(self.instead)
        kept = {path: text for path, text in wrong.files.items() if path not in right.removed}
        environment = right.environment or wrong.environment
        return Example(right.arguments or wrong.arguments, {**kept, **right.files}, environment=environment)


def _text(lines: list[str]) -> str:
    """The content of a file, without the docstring's blank lines around it."""
    return "\n".join(lines).strip("\n") + "\n" * any(lines)


class ConstructCode(NamedTuple):
    """The explanation of one code.

    Attributes:
        code: as `cdk synth` prints it.
        title: the finding, in one line.
        reason: why it matters, and what to do.
        page: the title of a page of the user guide, for the guide itself: a wheel does not contain the guide.
        severity: whether the app may be deployed nevertheless; a warning or an info message can be acknowledged.
    """

    code: str
    title: str
    reason: str
    page: str
    severity: Severity | Literal["info"] = Severity.WARNING

    @property
    def name(self) -> str:
        """The code without its prefix."""
        return self.code.partition(":")[2]
