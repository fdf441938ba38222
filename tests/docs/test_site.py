"""The site builds without a warning, the API has every public name, and every link of a built page works."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from tests.docs.blocks import ROOT
from tools.generate.public_surface import public_names


@dataclass
class Page(HTMLParser):
    """What the test needs of a page: its ids, and the places that it refers to."""

    ids: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src") and value and not urlsplit(value).scheme and not value.startswith("//"):
                self.places.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """The built pages, by their files."""
    project = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "mkdocs.yml", project)  # the site is built beside it
    shutil.copytree(ROOT / "docs", project / "docs")
    (project / "constructs").symlink_to(ROOT / "constructs")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    built = project / "site"
    pages = {path: Page() for path in built.rglob("*.html")}
    for path, page in pages.items():
        page.feed(path.read_text(encoding="utf-8"))
    return pages


def test_the_api_has_every_public_name(site: dict[Path, Page]) -> None:
    """Once: a name that two modules offer is on the page of one."""
    ids = {each for page in site.values() for each in page.ids}
    places: dict[str, set[str]] = {}
    for module, names in public_names().items():
        for name in names:
            places.setdefault(name, set()).add(f"{module}.{name}")
    assert len(places) > 60
    assert [name for name, addresses in places.items() if not ids & addresses] == []


def test_every_link_of_a_page_leads_somewhere(site: dict[Path, Page]) -> None:
    lost = [
        f"{path}: {place}" for path, page in site.items() for place in page.places if leads_nowhere(site, path, place)
    ]
    assert lost == []


def test_every_picture_follows_a_dark_page() -> None:
    pictures = (ROOT / "docs" / "images").rglob("*.svg")
    assert [each.name for each in pictures if "prefers-color-scheme: dark" not in each.read_text("utf-8")] == []


def leads_nowhere(site: dict[Path, Page], path: Path, place: str) -> bool:
    """Whether a page refers to a file or an id that the site does not have."""
    address, anchor = urldefrag(place)
    if address.startswith("/"):
        return path.name != "404.html"  # which the server may send for any address, so its links are absolute
    target = (path.parent / unquote(urlsplit(address).path)).resolve() if address else path
    target = target / "index.html" if target.is_dir() else target
    return not target.exists() or (bool(anchor) and target in site and unquote(anchor) not in site[target].ids)
