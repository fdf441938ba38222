"""Stages archives, sources and build plans in the cloud assembly, from which the CDK CLI publishes them.

An archive is written directly as a file asset. `aws_s3_assets.Asset` would read it again to hash it, and copy it, which
moves three times the size of the weights for nothing. The file's name is the artifact key, or the hash of the sources
of a build, so an archive that is already in the assembly is not packed again.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aws_cdk import (
    Annotations,
    FileAssetPackaging,
    IStackSynthesizer,
    NestedStack,
    Stack,
    Stage,
)
from constructs import Construct, IConstruct

from cdk_triton._jsii import Struct, invoke_for_struct
from cdk_triton._tokens import has_token
from cdk_triton.artifacts.build_plan import build_inputs
from cdk_triton.artifacts.prepare import Prepared
from cdk_triton.artifacts.program import write_program
from cdk_triton.artifacts.reading import changed, file_state, read_blocks
from cdk_triton.errors import ArchiveError, ConfigurationError
from cdk_triton.hosting.naming.per_construct import cached_per_construct, path_of
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.protocol import layout
from cdk_triton.protocol.layout import ASSET_PREFIX
from cdk_triton.protocol.plan import BuildInput, EnsembleBuild, File
from cdk_triton.rehearsal.prepared import PreparedRehearsal

__all__ = ["Artifact", "CloudAssembly", "PublishedPlan", "stage"]

PIPELINE_WARNING = "cdk-triton:PipelineAssets"

PIPELINE_BYTES = 200_000_000
"""CodePipeline gives each CloudFormation action the whole cloud assembly, of 256 MB at most (aws/aws-cdk#9917, #21325);
the rest is left for the templates and for other assets."""


MAX_KEY_BYTES = 1024
"""The limit of an object's key ("Naming Amazon S3 objects")."""


@dataclass(frozen=True)
class Artifact:
    """A repository on its way into the store.

    Attributes:
        prepared: the repository.
        asset: the archive's object key among the assets; None if it is built or promoted, or there are `files`.
        build: how the archive is built, or None.
        golden: the ZIP file of the golden requests that the archive is rehearsed with; None if it is not rehearsed, or
            promoted, because a promoting store rehearses nothing.
        files: the files that are served instead of an archive, or None.
    """

    prepared: Prepared
    asset: str | None = None
    build: EnsembleBuild | None = None
    golden: BuildInput | None = None
    files: tuple[File, ...] | None = None

    @property
    def name(self) -> str:
        """The repository's name."""
        return self.prepared.repository.name

    @property
    def archive(self) -> str:
        """The archive's object key in the store, or the prefix of the files that are served instead."""
        place = layout.archive_key if self.files is None else layout.files_prefix
        return place(self.name, self.prepared.keys.artifact)


class PublishedPlan(NamedTuple):
    """The location of a build plan in the deployment.

    Attributes:
        bucket_name: the bucket of the CDK's bootstrap; contains tokens if account or region do.
        object_key: the object key of the build plan in this bucket, as literal text.
        sha256: the SHA-256 of the build plan's text.
    """

    bucket_name: str
    object_key: str
    sha256: str


class CloudAssembly:
    """The place of the assets of a construct's stack.

    Raises:
        ConfigurationError: the construct is not within an App.
    """

    def __init__(self, scope: Construct) -> None:
        stack, stage = stack_of(scope), Stage.of(scope)
        if stage is None:
            raise ConfigurationError(f"{scope.node.path} is not within an App, so there is nowhere to put its archives")
        self._path = path_of(scope)
        self._stage = stage
        self._synthesizer = _synthesizer(stack)
        app = stage.node.root
        self._archives = _archives_of(app)
        self._is_in_pipeline = stage is not app
        # A nested Stage has a directory of its own, but assets lie in the app's.
        self._assets = Path(stage.asset_outdir)
        self.outdir = Path(stage.outdir)
        self._from_manifest = PurePosixPath(os.path.relpath(self._assets, self.outdir))
        self._directory: str | None = None  # of the assets in their bucket, known with the first one

    def add_archive(self, prepared: Prepared, *, pack: bool) -> str:
        """Publish the archive of a repository or, if it is built, of its sources.

        The archive is packed if the cloud assembly does not have it.

        Args:
            prepared: what to pack.
            pack: False if the synthesis is known to fail, so that the user does not wait for gigabytes.

        Returns:
            The object key among the assets.

        Raises:
            ArchiveError: a file cannot be read or is being written to, or the archive cannot be written.
        """
        name, what = prepared.keys.artifact, "Triton repository"
        if prepared.build is not None:
            name, what = f"sources-{prepared.keys.sources}", "Sources of Triton repository"
        target = self._assets / f"asset.{ASSET_PREFIX}{name}.tar.gz"
        if pack and not target.exists():
            from cdk_triton.artifacts.archive import pack_prepared  # an existing archive is not packed again

            pack_prepared(prepared, target)
        return self._add(target, name, f"{what} {prepared.repository.name}")

    def add_files(self, prepared: Prepared, *, pack: bool) -> tuple[File, ...]:
        """Publish each file of a repository as a separate asset, named by its content.

        Args:
            prepared: the repository whose files are published.
            pack: False if the synthesis is known to fail, so nothing needs to be copied.

        Returns:
            The files in the form of build plans; an empty file needs no asset.

        Raises:
            ArchiveError: a file cannot be read or is being written to, or cannot be copied.
        """
        published: dict[str, str] = {}
        files: list[File] = []
        for file, sha256 in prepared.files.items():
            if file.source is not None and file.size and sha256 not in published:
                target = self._assets / f"asset.{ASSET_PREFIX}file-{sha256}.bin"
                if pack and not target.exists():
                    _copy(prepared, file.source, sha256, target)
                display_name = f"{file.path} of Triton repository {prepared.repository.name}"
                published[sha256] = self._add(target, f"file-{sha256}", display_name)
            asset = published[sha256] if file.size else None
            files.append(File(file.path, asset, file.size))
        return tuple(files)

    def add_golden(self, rehearsal: PreparedRehearsal, *, pack: bool) -> str:
        """Publish the golden requests of a rehearsal, named by their content.

        Args:
            rehearsal: the rehearsal.
            pack: False if the synthesis is known to fail, so nothing needs to be written.

        Returns:
            The object key among the assets.

        Raises:
            ArchiveError: a golden file is being written to.
        """
        name = f"golden-{rehearsal.golden}"
        target = self._assets / f"asset.{ASSET_PREFIX}{name}.zip"
        if pack and not target.exists():
            draft = target.with_suffix(f".{os.getpid()}.tmp")
            try:
                rehearsal.write_golden(draft)
                draft.replace(target)
            finally:
                draft.unlink(missing_ok=True)
        return self._add(target, name, f"Golden requests of Triton repository {rehearsal.repository.name}")

    def add_program(self) -> str:
        """Publish the program that builds, named by its content.

        Returns:
            The object key among the assets.
        """
        draft = self._assets / f"asset.{ASSET_PREFIX}program.{os.getpid()}.tmp"
        try:
            write_program(draft)
            name = f"program-{hashlib.sha256(draft.read_bytes()).hexdigest()}"
            target = self._assets / f"asset.{ASSET_PREFIX}{name}.pyz"
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return self._add(target, name, "The program that builds Triton artifacts")

    def add_plan(self, text: bytes) -> PublishedPlan:
        """Publish a build plan for the store's handler.

        Raises:
            ConfigurationError: the stack's synthesizer names assets only during the deployment.
        """
        sha256 = hashlib.sha256(text).hexdigest()
        target = self._assets / f"asset.{ASSET_PREFIX}plan-{sha256}.json"
        if not target.exists():
            draft = target.with_suffix(f".{os.getpid()}.tmp")
            draft.write_bytes(text)
            draft.replace(target)
        location = self._locate(target, f"plan-{sha256}", f"Triton artifacts of {self._path}")
        object_key = location.text("object_key")
        if has_token(object_key):
            raise ConfigurationError(
                f"the synthesizer of the stack of {self._path} names assets only during the deployment, but its plan "
                "needs their names: use DefaultStackSynthesizer or CliCredentialsStackSynthesizer"
            )
        return PublishedPlan(location.text("bucket_name"), object_key, sha256)

    def _add(self, file: Path, name: str, display_name: str) -> str:
        """The object key of a file among the assets, which have one directory and names of this library.

        The handler can read only such names. The CDK is called for the key of the first file only, because a
        multi-model endpoint may have a thousand files.
        """
        location = self._locate(file, name, display_name)
        named = f"{ASSET_PREFIX}{name}{file.suffix}"
        if self._directory is None:
            object_key = location.text("object_key")
            if not object_key.endswith(named):
                return object_key
            self._directory = object_key.removesuffix(named)
        return f"{self._directory}{named}"

    def _locate(self, file: Path, name: str, display_name: str) -> Struct:
        """Register a file of the cloud assembly as an asset, and return its `FileAssetLocation`."""
        self._warn_about_pipelines(file)
        return invoke_for_struct(
            self._synthesizer,
            "add_file_asset",
            source_hash=f"{ASSET_PREFIX}{name}",
            file_name=str(self._from_manifest / file.name),
            packaging=FileAssetPackaging.FILE,
            display_name=display_name,
        )

    def _warn_about_pipelines(self, file: Path) -> None:
        """Warn once, below a Stage, if the archives are too large for CDK Pipelines.

        The archives of all stages count, because each action of a pipeline gets the whole cloud assembly.
        """
        archives = self._archives
        if file not in archives.files:
            with suppress(FileNotFoundError):
                archives.size += file.stat().st_size
                archives.files.add(file)
        if archives.size > PIPELINE_BYTES and self._is_in_pipeline and not archives.has_warned:
            archives.has_warned = True
            Annotations.of(self._stage).add_warning_v2(
                PIPELINE_WARNING,
                f"with the stage {self._stage.node.path}, the archives of the app have more than "
                f"{PIPELINE_BYTES // 10**6} MB together. CDK Pipelines passes the whole cloud assembly to each "
                "deployment, but the assembly may have 256 MB at most. Give recipes their large files as "
                "S3File(bucket, key, sha256), or acknowledge this if no pipeline deploys the app",
            )


def stage(
    assembly: CloudAssembly,
    prepared: Prepared,
    *,
    promotes: bool,
    pack: bool,
    uncompressed: bool,
) -> Artifact:
    """Stage a repository or the sources of its build; nothing if the archive is promoted from another store.

    Args:
        assembly: the cloud assembly that gets the assets.
        prepared: the repository.
        promotes: whether the store that gets the artifact promotes it from another store.
        pack: False if the synthesis is known to fail, so nothing needs to be packed or built.
        uncompressed: whether the files are served without an archive.

    Raises:
        ConfigurationError: a name cannot be part of an object key.
        ArchiveError: a file cannot be read or is being written to, or cannot be packed or copied.
    """
    if uncompressed:
        return Artifact(prepared, files=_files(assembly, prepared, pack=pack))
    if promotes:
        return Artifact(prepared)
    golden = None if prepared.rehearsal is None else _golden(assembly, prepared.rehearsal, pack=pack)
    asset = assembly.add_archive(prepared, pack=pack)
    if prepared.build is None or not pack:
        return Artifact(prepared, asset=asset, golden=golden)
    inputs = build_inputs(prepared.build.ensemble, prepared.s3_files, asset)
    return Artifact(prepared, build=EnsembleBuild(inputs, prepared.build.ensemble), golden=golden)


def _golden(assembly: CloudAssembly, rehearsal: PreparedRehearsal, *, pack: bool) -> BuildInput:
    return BuildInput(None, assembly.add_golden(rehearsal, pack=pack), f"rehearsals/{rehearsal.key}.zip")


def _files(assembly: CloudAssembly, prepared: Prepared, *, pack: bool) -> tuple[File, ...]:
    prefix = layout.files_prefix(prepared.repository.name, prepared.keys.artifact)
    files = assembly.add_files(prepared, pack=pack)
    if longest := [file.path for file in files if len(f"{prefix}{file.path}".encode()) > MAX_KEY_BYTES]:
        raise ConfigurationError(
            f"{longest[0]!r} of {prepared.repository.root} makes an object key of more than {MAX_KEY_BYTES} bytes, "
            "which S3 rejects: shorten the path, or remove uncompressed="
        )
    return files


def _copy(prepared: Prepared, source: Path, sha256: str, target: Path) -> None:
    """Copy a file into the cloud assembly, whose file names are hashes. So the copy must have the hash of the check."""
    draft = target.with_suffix(f".{os.getpid()}.tmp")
    found = hashlib.sha256()
    try:
        with draft.open("wb") as copy:
            for block in read_blocks(source, file_state(source)):
                found.update(block)
                copy.write(block)
        if found.hexdigest() != sha256:
            raise changed(prepared.repository.root, "the repository was copied")
        draft.replace(target)
    except OSError as error:
        raise ArchiveError(
            f"{source} cannot be copied to {target}: {error.strerror}; make room there, or have the cloud assembly "
            "written elsewhere"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


class _Archives:
    """The archives of an app, their total size, and whether a Stage was warned of it."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self.size = 0
        self.has_warned = False


@cached_per_construct
def _archives_of(app: IConstruct) -> _Archives:
    return _Archives()


@cached_per_construct
def _synthesizer(stack: Stack) -> IStackSynthesizer:
    """The stack's synthesizer, as a nested stack would use it.

    `stack.synthesizer` fails if the user gave the stack a synthesizer made in Python. The stack binds a copy of it that
    has the identity of the original in jsii. So Python gets the unbound original ("must be bound to a Stack first"),
    and Node prints a warning. A nested stack has a synthesizer of its own, which delegates to the bound one. It is
    removed from the tree at once.
    """
    synthesizer = NestedStack(stack, _PASSING).synthesizer
    children = stack.node
    for name in (_PASSING, f"{_PASSING}.NestedStack"):
        children.try_remove_child(name)
    return synthesizer


_PASSING = "$cdk-triton synthesizer$"  # no user is likely to choose this id
