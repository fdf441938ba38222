"""Writes what the local AWS models into local_aws.md, from the code itself.

Run it after a change of the local AWS: `python docs/fidelity_table.py`. A test compares.
"""

from __future__ import annotations

from pathlib import Path

from cdk_triton.local.fidelity import markdown

PAGE = Path(__file__).with_name("local_aws.md")
BEGIN = "<!-- begin: written by fidelity_table.py -->\n"
END = "<!-- end -->\n"


def with_table(page: str) -> str:
    """Return the page with what is modelled between its two marks."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + markdown() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
