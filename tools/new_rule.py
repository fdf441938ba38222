"""Writes the skeleton of a rule and of its test: `python tools/new_rule.py CT199 files model_files "the title"`.

Rules about a kind of models, such as `onnx_models`, lie in its package `rules`, and rules of the other areas below
`checks`.

The rule follows the last rule of the module, above the helpers. A module that is missing is created. The next page to
read is docs/contributing/add-a-rule.md.
"""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

from cdk_triton.checks import rules

ROOT = Path(__file__).parents[1]
AREAS = {
    "files": "1",
    "configuration": "2",
    "ensembles": "3",
    "endpoint": "45",
    "serving": "6",
    "python_models": "1",
    "onnx_models": "12",
    "tensorrt_models": "17",
    "tree_models": "8",
    "pytorch_models": "8",
    "dali_models": "8",
}
"""Area → the hundreds of its codes; CT65x belong to `endpoint`, too."""

MODULE = '''"""{about}."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
'''

RULE = '''

@model_rule(
    "{code}",
    Severity.{severity},
    "{title}",
    source=core("src/model_config_utils.cc", 1, 2),  # the code or page that enforces it
)
def {function}(each: ConfiguredModel) -> Iterator[Problem]:
    """One line: what is wrong in the repository.

    Why it matters: what the server does, in its own words.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: -1

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 0
    """
    if each.config.max_batch_size < 0:  # the fault
{problem}
'''
PROBLEMS = {
    "ERROR": """\
        yield each.unloadable(
            "max_batch_size",
            "what was found, with its value",
            "the server's own words, for the reason why it does not load the model",
            "what to do",
        )""",
    "WARNING": """\
        yield each.problem(
            "max_batch_size",
            "what was found, with its value, and what the server would do",
            "what to do",
        )""",
}

TEST_MODULE = '''"""Tests of the rules in `cdk_triton.{package}.{module}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write
'''

TEST = """

def test_{function}(messages: Messages, write: Write) -> None:
    config = 'backend: "python" max_batch_size: -1'
    repository = write({{"model/config.pbtxt": config, "model/1/model.py": ""}}, base={{}})
    assert messages.of(repository.check()) == [("{code}", "model/config.pbtxt", "max_batch_size")]
"""


def main() -> None:
    """Check the arguments, write the two skeletons and print the next steps."""
    parser = argparse.ArgumentParser(description="Write the skeleton of a rule and of its test.")
    parser.add_argument("code", help="a free code, such as CT199")
    parser.add_argument("area", choices=sorted(AREAS), help="the package below cdk_triton/checks, or a kind of models")
    parser.add_argument("module", help="the module in it, such as model_files")
    parser.add_argument("title", help="the fault in one line, such as 'a model has two files'")
    parser.add_argument("--warning", action="store_true", help="the rule gives a warning; without this, an error")
    given = parser.parse_args()
    if fault := _fault(given.code, given.area, given.module, given.title):
        parser.error(fault)
    function = re.sub(r"\W+", "_", given.title.lower()).strip("_")
    severity = "WARNING" if given.warning else "ERROR"
    package = Path(given.area, "rules") if given.area.endswith("_models") else Path("checks", given.area)
    names = {
        "code": given.code,
        "severity": severity,
        "title": given.title,
        "function": function,
        "problem": PROBLEMS[severity],
        "package": ".".join(package.parts),
        "module": given.module,
    }
    module = ROOT / "constructs" / "cdk_triton" / package / f"{given.module}.py"
    test = ROOT / "tests" / package / f"test_{given.module}.py"
    about = f"Rules about {given.module.replace('_', ' ')}"
    _add(module, MODULE.format(about=about), RULE.format(**names))
    _add(test, TEST_MODULE.format(**names), TEST.format(**names))
    print(f"{module.relative_to(ROOT)}: the rule {given.code}, to be filled in")
    print(f"{test.relative_to(ROOT)}: its test")
    print(f"next: fill in both, then run `pytest --rewrite-messages tests/checks -k {given.code}`")
    print(f"then: `make check-rule CODE={given.code}`")


def _fault(code: str, area: str, module: str, title: str) -> str:
    if not re.fullmatch(r"CT\d{3}", code):
        return f"{code!r} is not a code of this library: write CT and three digits"
    taken = {each.code: each for each in rules()}
    if code in taken:
        free = next(f"CT{number}" for number in range(int(code[2:]), 1000) if f"CT{number}" not in taken)
        return f"{code} is {taken[code].title!r}, in {taken[code].defined_in}: the next free code is {free}"
    fitting = ["endpoint"] if code.startswith("CT65") else [each for each in AREAS if code[2] in AREAS[each]]
    if area not in fitting:
        areas = " or ".join(fitting) or "no area"
        return f"{code} belongs to {areas}, not to {area}: see the table in cdk_triton/checks/__init__.py"
    if not module.isidentifier():
        return f"{module!r} cannot name a module: write lower-case words with underscores"
    if not re.fullmatch(r"[\w.,' -]{20,90}", title):
        return f"the title {title!r} must have 20 to 90 letters, digits and simple punctuation"
    return ""


def _add(path: Path, head: str, text: str) -> None:
    """Add a function after the last rule of the module, or at the end if it has no rules, and imports that it lacks."""
    source = path.read_text(encoding="utf-8") if path.exists() else head
    lines = source.splitlines(keepends=True)
    rules_end = [each.end_lineno for each in ast.parse(source).body if _is_rule(each)]
    end = rules_end[-1] if rules_end else len(lines)
    lines[end:end] = [text]
    for statement in reversed(_imports(head)):
        names = [each for each in statement.names if each.name not in _names(_imports(source))]
        if names:
            # Below the last import of the same block: the module's own, or that under `if TYPE_CHECKING:`.
            same = [each for each in _imports(source) if bool(each.col_offset) == bool(statement.col_offset)]
            at = (same or _imports(source))[-1]
            line = ast.unparse(ast.ImportFrom(statement.module, names, 0))
            lines[at.end_lineno : at.end_lineno] = [f"{' ' * at.col_offset}{line}\n"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def _imports(source: str) -> list[ast.ImportFrom]:
    """The imports of names, in their order."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return sorted(found, key=lambda node: node.lineno)


def _names(imports: list[ast.ImportFrom]) -> set[str]:
    return {each.name for statement in imports for each in statement.names}


def _is_rule(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and any("rule(" in ast.unparse(d) for d in statement.decorator_list)


if __name__ == "__main__":
    main()
