"""A package index that is a directory of hand-made wheels."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["WheelIndex"]


class WheelIndex:
    """Wheels in a directory, for the option `--find-links` of pip and uv."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def add(
        self,
        name: str,
        *,
        version: str = "1.0",
        requires: str = "",
        tag: str = "py3-none-any",
        code: str = "",
        files: Mapping[str, str] | None = None,
    ) -> str:
        """Write a wheel, and return its line of a requirements file; `files` are beside its `__init__.py`."""
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        info = f"{name}-{version}.dist-info"
        content = {
            f"{name}/__init__.py": code,
            **{f"{name}/{path}": text for path, text in (files or {}).items()},
            f"{info}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
            f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
        }
        record = [f"{path},{_record_hash(text)},{len(text)}" for path, text in content.items()]
        content[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
        path = self.directory / f"{name}-{version}-{tag}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for each, text in content.items():
                archive.writestr(each, text)
        return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def _record_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")
