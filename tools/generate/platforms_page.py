"""The page of releases and instance types, docs/platforms.md, from the tables of Triton and of SageMaker."""

from __future__ import annotations

from collections.abc import Iterator

from tools.generate import Files, Generator

from cdk_triton.sagemaker import GpuInstance, gpu_instances, image_releases
from cdk_triton.triton import releases

PAGE = "docs/platforms.md"
HEAD = """\
<!-- written by `make generate` -->
# Releases and instances

These are the Triton releases and GPU instance types of the library's tables `triton/data/releases.json`,
`sagemaker/data/images.json` and `sagemaker/data/gpu_instances.json`, which name their sources and the day they were
read.

## Releases

If SageMaker publishes no image of a release, you need your own image. A version with `?` is assumed; no source has
confirmed it. A TensorRT version with `?` never causes a rejection. A dash means that no version was found.
"""
INSTANCES = """\
## Instance types

"Memory" is the nominal memory of one GPU in GB. "Multi-model" shows whether AWS lists the type for multi-model
endpoints with GPUs. AWS's list names no family newer than g5, and not every type of the older families. "No" therefore
means "not on AWS's list, and not known to work".

"Not dropped by" lists the releases that still support a GPU of this age. If the oldest GPU that a release supports is
not known, the table assumes the oldest GPU of the next newer release for which it is known. It does not show whether an
old release supports a new GPU; [Endpoints](endpoints.md#the-host-ami) lists the releases that Blackwell instances need.
"""


def page() -> str:
    """Return the page's whole text."""
    return "\n".join([HEAD, *_releases(), "", INSTANCES, *_instances(), ""])


def _releases() -> Iterator[str]:
    published = image_releases()
    yield "| release | Triton | CUDA | TensorRT | Python | image |"
    yield "|---|---|---|---|---|---|"
    for each in reversed(releases()):
        cuda = _version(each.cuda, read=each.cuda_read)
        tensorrt = _version(each.tensorrt, read=each.tensorrt_confidence != "unverified")
        python = _version(each.python, read="python" not in each.assumed)
        image = _yes(each.release in published)
        yield f"| {each.release} | {each.triton or '-'} | {cuda} | {tensorrt} | {python} | {image} |"


def _instances() -> Iterator[str]:
    yield "| type | GPU | GPUs | memory | multi-model | not dropped by |"
    yield "|---|---|---|---|---|---|"
    for each in gpu_instances().values():
        gpu = each.gpu.removeprefix("NVIDIA ")
        listed = _yes(each.multi_model_listed)
        yield f"| `{each.name}` | {gpu} | {each.gpu_count} | {each.gpu_memory_gb} | {listed} | {_served(each)} |"


def _served(instance: GpuInstance) -> str:
    """Return the releases for which the GPU of this type is new enough, as ranges."""
    if not instance.hosting:
        return "none: not for hosting"
    ranges: list[list[str]] = []
    before = False
    for name, needed in _oldest_gpus():
        supported = _number(instance.compute_capability) >= _number(needed)
        if supported and before:
            ranges[-1][1:] = [name]
        elif supported:
            ranges.append([name])
        before = supported
    served = ", ".join(" to ".join(each) for each in ranges) or "none: GPU too old"
    return served if instance.host == "x86_64" else f"{served}, own image for Arm"


def _oldest_gpus() -> list[tuple[str, str]]:
    """Return each release with the lowest compute capability that it supports, oldest release first."""
    found: list[tuple[str, str]] = []
    needed = ""
    for each in reversed(releases()):
        needed = each.min_compute_capability or needed
        found.append((each.release, needed))
    return found[::-1]


def _version(version: str | None, *, read: bool) -> str:
    if version is None:
        return "-"
    return version if read else f"{version} ?"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _files() -> Files:
    return {PAGE: page().encode()}


GENERATOR = Generator(_files)
