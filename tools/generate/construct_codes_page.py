"""The page of the constructs' codes, docs/construct_codes.md, from the table that `cdk-triton explain` prints."""

from __future__ import annotations

from collections.abc import Iterable

from tools.generate import ROOT, Files, Generator

from cdk_triton.checks.documentation import ConstructCode
from cdk_triton.hosting.naming.construct_codes import CONSTRUCT_CODES
from cdk_triton.triton import Severity

PAGE = "docs/construct_codes.md"
HEAD = """\
<!-- written by `make generate` -->
# Codes of the constructs

At `cdk synth`, the constructs report these findings about an app. Findings about a model repository have
[rules](rules.md), and `cdk-triton validate` reports them, too. `cdk-triton explain cdk-triton:NoWayOut` prints an entry
of this page. The command also accepts the prefix `Annotation::`, which the CDK writes before a code in its validation
report.

{errors} are errors.
{infos} have the level `info`. Every other code is a
warning. If the app is correct as it is, acknowledge the warning on the construct that it names. For the level `info`,
use `acknowledge_info`:

```python
from aws_cdk import Annotations

Annotations.of(model).acknowledge_warning("cdk-triton:NoWayOut", "the VPC reaches S3 through a transit gateway")
```

A code keeps its meaning, and the code of a removed finding is not reused.
"""


def page(codes: Iterable[ConstructCode]) -> str:
    """The page's whole text."""
    codes = tuple(codes)
    errors = " and ".join(f"`{each.code}`" for each in codes if each.severity is Severity.ERROR)
    infos = " and ".join(f"`{each.code}`" for each in codes if each.severity == "info")
    return "\n".join([HEAD.format(errors=errors, infos=infos), _index(codes), *map(_section, codes)])


def _index(codes: Iterable[ConstructCode]) -> str:
    rows = [f"| [{each.name}](#{each.name.lower()}) | {each.title} |" for each in codes]
    return "\n".join(["| code, after `cdk-triton:` | the finding |", "|---|---|", *rows, ""])


def _section(each: ConstructCode) -> str:
    return f"### {each.name}\n\n**{each.title}**\n\n{each.reason} See [{each.page}]({_file(each.page)}).\n"


def _file(title: str) -> str:
    """Return the name of the page with this title."""
    (found,) = (
        page.name
        for page in (ROOT / "docs").glob("*.md")
        if page.read_text(encoding="utf-8").startswith(f"# {title}\n")
    )
    return found


def _files() -> Files:
    return {PAGE: page(CONSTRUCT_CODES).encode()}


GENERATOR = Generator(_files)
