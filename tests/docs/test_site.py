"""The site builds without a warning, the API has every public name, and every link of a built page works."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from tests.docs.blocks import ROOT

import cdk_triton


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


def public_modules() -> list[ModuleType]:
    """The modules whose names docs/stability.md promises."""
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    (promise,) = re.findall(r"^\| Python names \| .* direct packages and modules: (.*) \|$", page, re.MULTILINE)
    return [cdk_triton, *(importlib.import_module(f"cdk_triton.{name}") for name in re.findall(r"`(\w+)`", promise))]


def address(module: ModuleType, name: str) -> str:
    """The id of a name on the pages; a function with the name of its file has the name twice."""
    found = f"{module.__name__}.{name}"
    return f"{found}.{name}" if sys.modules.get(found, getattr(module, name)) is not getattr(module, name) else found


def test_the_api_has_every_public_name(site: dict[Path, Page]) -> None:
    """Once: a name that two modules offer is on the page of one."""
    ids = {each for page in site.values() for each in page.ids}
    modules = public_modules()
    assert len(modules) == 8
    names = {name for module in modules for name in module.__all__}
    offering = {name: [module for module in modules if name in module.__all__] for name in names}
    assert [name for name in sorted(names) if not ids & {address(module, name) for module in offering[name]}] == []


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
