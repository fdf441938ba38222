"""A test double for micromamba: it knows `--version` and `create`, takes packages from a directory, asks no network.

Its options are those of micromamba 2.8.1 (mamba: micromamba/src/common_options.cpp, init_install_options), and an
unknown one is an error, as there. It reads explicit files as libmamba does (src/api/install.cpp and
src/specs/package_info.cpp), down to the hash of an unknown form that is ignored. Packages are `.tar.bz2` only.

The directory `channel` beside the program holds the packages.
"""

from __future__ import annotations

import argparse
import bz2
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "2.8.1"
UNKNOWN_OPTION = 109  # CLI11's ExtrasError


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # it does not return
        sys.stderr.write(f"{message}\n")
        sys.exit(UNKNOWN_OPTION)


def parser() -> argparse.ArgumentParser:
    top = Parser(allow_abbrev=False, add_help=False)
    top.add_argument("--version", action="store_true")
    commands = top.add_subparsers(dest="command")
    create = commands.add_parser("create", allow_abbrev=False, add_help=False)
    for flag in ("--no-rc", "--no-env", "--no-pyc", "--always-copy", "--no-deps", "--offline", "--json"):
        create.add_argument(flag, action="store_true")
    create.add_argument("-y", "--yes", action="store_true")
    create.add_argument("-q", "--quiet", action="store_true")
    create.add_argument("-r", "--root-prefix", type=Path)
    create.add_argument("-p", "--prefix", type=Path)
    create.add_argument("-f", "--file", type=Path)
    create.add_argument("--platform")
    create.add_argument("--safety-checks", choices=["enabled", "warn", "disabled"])
    create.add_argument("--log-level")
    return top


def explicit_specs(text: str) -> list[tuple[str, str]]:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if "@EXPLICIT" not in lines:
        sys.exit("this double reads explicit files only")
    after = lines[lines.index("@EXPLICIT") + 1 :]
    return [(url, digest) for url, _, digest in (line.partition("#") for line in after)]


def check(file: Path, digest: str) -> None:
    sha256 = re.fullmatch(r"(?:sha256:)?([0-9a-f]{64})", digest)
    algorithm, expected = ("sha256", sha256[1]) if sha256 else ("md5", digest)
    if sha256 is None and re.fullmatch(r"[0-9a-f]{32}", digest) is None:
        return  # ignored, as libmamba does
    if hashlib.new(algorithm, file.read_bytes()).hexdigest() != expected:
        sys.exit(f"error    libmamba File not valid: {algorithm.upper()} sum doesn't match expectation {expected}")


def install(url: str, digest: str, channel: Path, root: Path, prefix: Path) -> None:
    name = url.rpartition("/")[2]
    packages = root / "pkgs"
    packages.mkdir(parents=True, exist_ok=True)
    if not (channel / name).exists():
        sys.exit(f"critical libmamba Download error (404) for {url}")
    shutil.copyfile(channel / name, packages / name)
    check(packages / name, digest)
    unpacked = packages / name.removesuffix(".tar.bz2")
    unpacked.mkdir()
    # The filters of `tarfile`, which newer Pythons ask for, are not in the Python 3.11 of Debian.
    content = bz2.decompress((packages / name).read_bytes())
    subprocess.run(["/bin/tar", "--extract", "--no-same-owner"], cwd=unpacked, input=content, check=True)
    index = json.loads((unpacked / "info" / "index.json").read_text())
    files = [each["_path"] for each in json.loads((unpacked / "info" / "paths.json").read_text())["paths"]]
    for file in files:
        target = prefix / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(unpacked / file, target, follow_symlinks=False)
    record = {**index, "url": url, "fn": name, "files": files, "link": {"source": str(unpacked), "type": 3}}
    (prefix / "conda-meta").mkdir(exist_ok=True)
    (prefix / "conda-meta" / f"{unpacked.name}.json").write_text(json.dumps(record))


def main() -> None:
    arguments = parser().parse_args()
    sys.stderr.write("cdk-triton stand-in for micromamba: a test double, packages come from a directory\n")
    if arguments.version:
        sys.stdout.write(f"{VERSION}\n")
        return
    for url, digest in explicit_specs(arguments.file.read_text()):
        install(url, digest, Path(sys.argv[0]).parent / "channel", arguments.root_prefix, arguments.prefix)
    # What micromamba writes there is another text in every run.
    (arguments.prefix / "conda-meta" / "history").write_text(f"# cmd: {' '.join(sys.argv)}\n")


if __name__ == "__main__":
    main()
