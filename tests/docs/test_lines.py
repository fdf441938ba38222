"""The lines of the pages that a person wrote fit into an editor, so that a diff of them can be read."""

from __future__ import annotations

from tests.docs.blocks import FENCE, GENERATED, ROOT

LONGEST = 120
WRITTEN_BY_PROGRAMS = (GENERATED, "docs/construct_codes.md")


def test_no_line_of_prose_is_longer_than_120_characters() -> None:
    """Rows of tables, and lines with a link, cannot always be wrapped."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = {page.relative_to(ROOT).as_posix(): page for page in pages}
    long = [
        f"{name}: {line}"
        for name, page in names.items()
        if not name.startswith(WRITTEN_BY_PROGRAMS)
        for line in FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
        if len(line) > LONGEST and "](" not in line and not line.lstrip().startswith("|")
    ]
    assert long == []
