"""`TritonModel`: one repository behind a single-model endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import Size
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton.artifacts.names import check_name
from cdk_triton.artifacts.recipes.plugins import with_plugins
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.models.imported import ImportedModel
from cdk_triton.hosting.models.inference_type import tell_protocol
from cdk_triton.hosting.models.max_payload import payload_bytes, with_max_payload
from cdk_triton.hosting.models.served_model import ServedModel
from cdk_triton.hosting.store.interface import ITritonArtifactStore
from cdk_triton.protocol import layout
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.sagemaker.platform import platform_of
from cdk_triton.triton import ContainerEnvironment, ModelRepository
from cdk_triton.triton.environment import container_variables
from cdk_triton.triton.inference_type import inference_type
from cdk_triton.triton.repository import PromisedFiles, repository_of
from cdk_triton.triton.shared_memory import with_shared_memory

__all__ = ["TritonModel"]


class TritonModel(ServedModel):
    """Serves one model repository: SageMaker downloads its archive and loads its entry model when an instance starts.

    The entry model is the model that callers invoke (`ModelRepository.entry_model`). The URL of the archive contains a
    hash of everything that determines the archive. So any change of a file, of the release or of the GPU creates a new
    SageMaker Model, and CloudFormation updates the endpoint. A rollback finds the old archive under its URL.

    Attributes:
        repository: the repository.
        inference_type: the protocol of the container: `infer`, `generate` or `generate_stream`.
        platform: the platform that serves the repository.
        role: the execution role.
        max_payload: the largest JSON of a request, in bytes. None: Triton's own limit.

    Args:
        scope: the stack or construct that the model belongs to.
        id: the construct's id.
        repository: the repository, or its directory, such as `models/search`. The name of the directory becomes part of
            the archive's URL. Permissions are per directory name, so a role that can read one archive below this name
            can read all of them. Give each repository its own name.
        platform: the release and instance type, or the short form "25.09/ml.g5.2xlarge".
        store: the store that keeps the archive; by default, the stack creates its own store.
        environment: how the container starts Triton; by default Triton loads the entry model, with the verbose log off.
        role: the execution role; by default a new role. The construct adds the permissions that the role needs.
        vpc: the VPC of the instances, through which they also download from S3; by default a VPC of SageMaker.
        vpc_subnets: the subnets of the instances, at least two in different availability zones; by default the private
            subnets of the VPC.
        security_groups: the security groups of the instances, up to 5; by default a new security group that allows all
            outbound and no inbound traffic.
        network_isolation: whether to cut the containers off from every network, and to give them no AWS credentials.
            SageMaker still downloads the archive and forwards the requests.
        uncompressed: whether the instances download the repository's files without an archive, so that they unpack
            nothing. Use this for weights of many gigabytes, which hardly compress. Each file becomes a CDK asset.
        metadata: your notes about the model, such as `{"commit": …, "approver": …}`. The file `manifest.json` beside an
            archive in the store contains the notes of the deployment that stored the archive, and the tags of the
            SageMaker Model contain the latest notes. The notes are not part of the artifact key.
        max_payload: how large the JSON of a request may be, as a CDK `Size` up to 1 GiB, for asynchronous endpoints; by
            default Triton's own limit, 64 MiB from 25.06 on. Binary tensors do not count. Needs Triton 26.03 or newer.

    Raises:
        ConfigurationError: an argument is not valid. By argument:

            * `repository`: the directory's name cannot be part of an object key.
            * `platform`: SageMaker has no image of this release in the stack's region, or your own image is in another
              region.
            * `store`: the store cannot read the stack's assets; or the repository has recipes, but the store has no
              builder with the platform's GPU.
            * `environment`: a field does not fit a single-model container, or the value of a variable is a secret that
              the template would show.
            * `role`: the role is in another account.
            * `vpc`: the VPC is in another region.
            * `vpc_subnets`, `security_groups`: `vpc` is missing, or SageMaker does not accept the subnets or groups.
            * `uncompressed`: the repository has recipes, or the store promotes archives from another store.
            * `metadata`: an entry cannot be a tag.
            * `max_payload`: the size is out of its range, the release does not support it, or `environment` sets it
              too.
        ArchiveError: the archive cannot be written.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        repository: ModelRepository | str | Path,
        platform: ServingPlatform | str,
        store: ITritonArtifactStore | None = None,
        environment: ContainerEnvironment | None = None,
        role: iam.IRole | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        network_isolation: bool = False,
        uncompressed: bool = False,
        metadata: Mapping[str, str] | None = None,
        max_payload: Size | None = None,
    ) -> None:
        repository, platform = repository_of(repository), platform_of(platform)
        check_name(repository.name, "the repository's directory")
        super().__init__(
            scope,
            id,
            platform=platform,
            store=store,
            role=role,
            vpc=vpc,
            vpc_subnets=vpc_subnets,
            security_groups=security_groups,
            network_isolation=network_isolation,
            metadata=metadata,
        )
        self.repository = repository
        self._load_timeout = None if repository.rehearsal is None else repository.rehearsal.load_timeout
        self.max_payload = payload_bytes(self, max_payload, platform)
        if uncompressed:
            _require_plain_files(repository, self._store)
        settings = with_max_payload(ContainerEnvironment() if environment is None else environment, self.max_payload)
        settings = with_shared_memory(with_plugins(settings, repository), platform.release)
        (artifact,) = self._deliver(
            {repository.name: repository}, "single", settings, uncompressed=uncompressed
        ).values()
        self.inference_type = inference_type(settings.inference_type, platform.release)
        tell_protocol(self, self.inference_type)
        variables = container_variables(settings, multi_model=False, default_model=artifact.prepared.entry_model)
        url = self._store.bucket.s3_url_for_object(artifact.archive)
        self._serve(
            layout.archive_prefix(artifact.name),
            {
                "mode": "SingleModel",
                "model_data_url": None if uncompressed else url,
                "model_data_source": _files_below(url) if uncompressed else None,
                "environment": variables,
            },
            artifact.prepared.keys.artifact,
        )

    @staticmethod
    @checked
    def from_model_attributes(
        scope: Construct,
        id: str,
        *,
        model_name: str,
        platform: ServingPlatform | str,
        role: iam.IRole,
        size: int = 0,
    ) -> ImportedModel:
        """Import a model that exists in the scope's account and region, for a `TritonVariant`.

        Args:
            scope: the stack or construct that uses the model.
            id: the construct's id.
            model_name: the name of the SageMaker Model.
            platform: the release and instance type for which the model was created, or the short form
                "25.09/ml.g5.2xlarge". SageMaker does not report these values.
            role: the execution role of the model.
            size: the size of the model's files before compression, in bytes. The default timeouts of `TritonVariant`
                depend on it.

        Raises:
            ConfigurationError: SageMaker does not accept the name.
        """
        return ImportedModel(scope, id, model_name=model_name, platform=platform, role=role, size=size)

    @property
    def target_models(self) -> Mapping[str, str]:
        """Empty, because callers do not send a `TargetModel`."""
        return {}

    @property
    def is_multi_model(self) -> bool:
        """False, because callers do not name a target model."""
        return False

    @property
    def size(self) -> int:
        """The size of the repository's files before compression, in bytes."""
        return self.repository.size


def _files_below(url: str) -> sagemaker.CfnModel.ModelDataSourceProperty:
    """All objects below a prefix; SageMaker puts each below /opt/ml/model, at the rest of its key."""
    return sagemaker.CfnModel.ModelDataSourceProperty(
        s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
            compression_type="None", s3_data_type="S3Prefix", s3_uri=url
        )
    )


def _require_plain_files(repository: ModelRepository, store: ITritonArtifactStore) -> None:
    """Reject `uncompressed=True` for a repository that is only served as an archive."""
    if not all(isinstance(recipe, PromisedFiles) for recipe in repository.recipes):
        raise ConfigurationError(
            f"{repository.root} has recipes, whose builds write archives, but uncompressed=True serves files without "
            "an archive: remove uncompressed=, or put the outputs of the recipes into the repository instead of the "
            "recipes"
        )
    if store.promotes_from is not None:
        raise ConfigurationError(
            f"{repository.root} has uncompressed=True, but its store promotes archives from another store: remove "
            "uncompressed, or give the model a store without promotes_from"
        )
