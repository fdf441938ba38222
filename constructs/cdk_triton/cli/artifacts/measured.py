"""What the rehearsals of an app have measured, where a deployment, an estimate or the doctor would guess.

The passes are in the store of the account. Figures of stand-ins say nothing about an instance, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA, PublisherDescription, parse_serving
from cdk_triton.artifacts.served_repositories import SERVED_METADATA
from cdk_triton.cli.artifacts.assembly import read_metadata, read_resource_metadata
from cdk_triton.cli.artifacts.aws import Aws, in_parallel
from cdk_triton.cli.artifacts.contents import PublishedEnsemble, read_published, read_text
from cdk_triton.cli.artifacts.store import Store, stores_of_region
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol import layout
from cdk_triton.protocol.documents import DocumentError
from cdk_triton.protocol.rehearsal import RehearsalPass
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["Figures", "Measured", "measured"]

_BYTES_PER_GB, _BYTES_PER_MIB = 10**9, 1 << 20
"""GB of the table of instance types are nominal. With 10^9 bytes each, a GPU has a little less than it may have."""


class Figures(NamedTuple):
    """The figures of one ensemble.

    Attributes:
        load_seconds: the seconds until its models were ready.
        gpu_memory_mib: the most memory that it used of one GPU, with the server's own, in MiB; None without a GPU.
    """

    load_seconds: float
    gpu_memory_mib: float | None


class Measured(NamedTuple):
    """The figures of a `TritonModel` or `TritonMultiModel`.

    Attributes:
        construct: its path.
        is_multi_model: whether an instance loads an ensemble at the first request for it.
        platform: the platform that serves it.
        ensembles: the figures by ensemble, of those that have passed a rehearsal.
    """

    construct: str
    is_multi_model: bool
    platform: ServingPlatform
    ensembles: Mapping[str, Figures]

    @property
    def memory(self) -> str | None:
        """How many of the ensembles fit into the memory of a GPU at once, as a sentence; None if that is not known.

        A server has its models on each GPU, unless an `instance_group` names some, so the memory of one GPU counts,
        however many the instance has.
        """
        used = [each.gpu_memory_mib for each in self.ensembles.values() if each.gpu_memory_mib is not None]
        if not used:
            return None
        gb = self.platform.gpu_memory_gb
        has = gb * _BYTES_PER_GB / _BYTES_PER_MIB
        if len(used) == 1:
            what = "the ensemble that was rehearsed" if self.is_multi_model else "its models"
            return f"{what} used {used[0]:,.0f} MiB of the {has:,.0f} MiB of a GPU ({gb} GB)"
        fit = len(used) if sum(used) <= has else int(has / (sum(used) / len(used)))
        which = f"{fit} of the {len(used)} ensembles that were rehearsed" if fit < len(used) else f"all {fit} ensembles"
        return (
            f"about {which} fit into a GPU at once: they used {sum(used):,.0f} MiB together, and a GPU has {has:,.0f} "
            f"MiB ({gb} GB)"
        )


class _Rehearsed(NamedTuple):
    """A `TritonModel` or `TritonMultiModel` with the object keys of its ensembles' passes."""

    construct: str
    is_multi_model: bool
    platform: ServingPlatform
    passes: Mapping[str, str]


def measured(app: Path) -> list[Measured]:
    """The figures of the models of an app that were rehearsed on AWS, those of published ensembles among them.

    AWS is asked only if something in the app is rehearsed.

    Args:
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError, BotoCoreError: AWS rejected a call, or could not be reached.
    """
    found = {each.construct: each for each in _of_app(app)}
    publishers = _publishers(app)
    if not publishers and not any(each.passes for each in found.values()):
        return []
    stores = stores_of_region(Aws())
    for construct, publisher in publishers.items():
        own = found[construct].passes if construct in found else {}
        passes = {**_published(publisher, stores), **own}
        found[construct] = _Rehearsed(construct, True, publisher.platform, passes)
    return [each for each in (_measured(each, stores) for each in found.values()) if each.ensembles]


def _of_app(app: Path) -> Iterator[_Rehearsed]:
    for construct, document, _ in read_metadata(app, SERVED_METADATA):
        try:
            platform, _ = parse_serving(document)
            yield _Rehearsed(construct, document["mode"] == "multi", platform, dict(document["passes"]))
        except (ConfigurationError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(
                f"another version of cdk-triton has written what {construct} serves ({error}): run `cdk synth` again"
            ) from error


def _publishers(app: Path) -> dict[str, PublisherDescription]:
    """The publishers that rehearse for the present platform, by the paths of their `TritonMultiModel`."""
    found = {}
    for stack, document in read_resource_metadata(app, PUBLISHER_METADATA):
        if document.get("is_next") or "builds" not in document:
            continue
        try:
            publisher = PublisherDescription.parse(document, stack)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"another version of cdk-triton has written the publisher of {stack}: run `cdk synth` again"
            ) from error
        if publisher.rehearse:
            found[f"{stack}/{publisher.multi_model}"] = publisher
    return found


def _published(publisher: PublisherDescription, stores: Sequence[Store]) -> dict[str, str]:
    """The object keys of the passes of live ensembles."""
    prefix = layout.catalogue_prefix(publisher.fleet, publisher.platform.label)
    found = (each for store in stores for each in read_published(store, prefix) if isinstance(each, PublishedEnsemble))
    live = {each.entry.ensemble: each.entry.versions[0] for each in found if each.entry.current is not None}
    return {
        name: layout.pass_key(each.repository, each.artifact_key, each.rehearsal)
        for name, each in live.items()
        if each.rehearsal is not None
    }


def _measured(of: _Rehearsed, stores: Sequence[Store]) -> Measured:
    figures = in_parallel(lambda key: next(_figures(key, stores), None), of.passes.values())
    ensembles = {name: each for name, each in zip(of.passes, figures, strict=True) if each is not None}
    return Measured(of.construct, of.is_multi_model, of.platform, ensembles)


def _figures(key: str, stores: Sequence[Store]) -> Iterator[Figures]:
    """From each store that has the pass: its key determines everything that was rehearsed."""
    for store in stores:
        text = read_text(store, key)
        try:
            result = {} if text is None else RehearsalPass.parse(text).result
        except DocumentError:  # of another version, for which no figure counts
            continue
        if result.get("load_seconds") is None or result.get("stand_ins"):
            continue
        gpu = (result.get("memory") or {}).get("gpu") or {}
        peak = gpu.get("peak")
        used = None if peak is None else peak - (gpu.get("before") or 0.0)
        yield Figures(result["load_seconds"], used)
