"""The table of supported versions in README.md: from the project's files, and its tables of AWS and Triton."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator

from tools.generate import ROOT, Files, Generator

from cdk_triton.sagemaker import GpuInstance, gpu_instances, image_releases
from cdk_triton.triton import releases

PAGE = "README.md"
BEGIN = "<!-- begin: supported versions, written by `make generate` -->\n"
END = "<!-- end: supported versions -->\n"
PYTHON = "Programming Language :: Python :: 3."


def table() -> str:
    """Return the table in Markdown."""
    rows = [("part", "supported"), ("---", "---"), *_software(), *_serving()]
    return "".join(f"| {part} | {supported} |\n" for part, supported in rows).replace("| --- | --- |", "|---|---|")


def _software() -> Iterator[tuple[str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lowest = project["requires-python"].removeprefix(">=")
    tested = [each.rpartition(" ")[2] for each in project["classifiers"] if each.startswith(PYTHON)]
    library = next(each for each in project["dependencies"] if each.startswith("aws-cdk-lib"))
    command = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]["aws-cdk"]
    yield "Python", f"{lowest} or newer; the tests run on {' and '.join(tested)}"
    yield "AWS CDK", f"`{library}`; the tests run with the `aws-cdk` command {command}"
    yield "Node.js", "22 or 24"
    yield "local AWS", f"Linux on x86-64, with Python {' or '.join(tested)}; the extra `local` contains Node.js 24"


def _serving() -> Iterator[tuple[str, str]]:
    known, images = releases(), image_releases()
    hosts = [each for each in gpu_instances().values() if each.hosting and each.host == "x86_64" and _is_served(each)]
    listed = [each for each in hosts if each.multi_model_listed]
    yield (
        "Triton releases",
        f"{known[0].release} or newer. The library has data for releases up to {known[-1].release}. SageMaker "
        f"has images of {len(images)} releases, from {images[0]} to {images[-1]}. Every other release needs an image "
        "of your own.",
    )
    yield (
        "GPU instances",
        f"{_families(hosts)}; [each Triton release](docs/platforms.md#instance-types) supports some of these GPUs",
    )
    yield (
        "multi-model endpoints",
        f"of these instances, AWS lists only types of {_families(listed)} for multi-model endpoints; the checks "
        "warn about every type that AWS does not list",
    )


def _is_served(instance: GpuInstance) -> bool:
    """Return whether the GPU is new enough for at least one release."""
    oldest = min(_number(each.min_compute_capability) for each in releases() if each.min_compute_capability)
    return _number(instance.compute_capability) >= oldest


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _families(instances: Iterable[GpuInstance]) -> str:
    return ", ".join(dict.fromkeys(f"`{each.family}`" for each in instances))


def with_table(page: str) -> str:
    """Return the page with the table between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def _files() -> Files:
    return {PAGE: with_table((ROOT / PAGE).read_text(encoding="utf-8")).encode()}


GENERATOR = Generator(_files)
