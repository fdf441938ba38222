"""`TritonModel`: one repository behind a single-model endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import Resource, Size
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton.artifacts import layout
from cdk_triton.artifacts.repository_checks import check_cached
from cdk_triton.hosting.access.images import container_image
from cdk_triton.hosting.access.network import connections, model_network
from cdk_triton.hosting.models.assets import CloudAssembly
from cdk_triton.hosting.models.delivery import Artifact, artifact_resource, reject_archives, stage_artifact, stage_files
from cdk_triton.hosting.models.execution_role import Execution, check_role, execution_role, grant_execution
from cdk_triton.hosting.models.imported import ImportedModel
from cdk_triton.hosting.models.max_payload import payload_bytes, with_max_payload
from cdk_triton.hosting.models.metadata import check_metadata, tag_model
from cdk_triton.hosting.models.recipe_checks import check_recipes
from cdk_triton.hosting.models.sagemaker_model import sagemaker_model
from cdk_triton.hosting.models.secrets import refuse_secrets
from cdk_triton.hosting.models.setting_warnings import warn_about_host
from cdk_triton.hosting.naming.findings import report
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.hosting.store.interface import ITritonArtifactStore
from cdk_triton.hosting.store.store import store_of
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment, ModelRepository
from cdk_triton.triton.environment import container_variables

__all__ = ["TritonModel"]


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class TritonModel(Resource):
    """Serves one model repository: SageMaker downloads its archive and loads its entry model when an instance starts.

    The URL of the archive contains a hash of everything that determines the archive. So any change of a file, of the
    release or of the GPU makes a new SageMaker Model, and CloudFormation updates the endpoint. The old archive keeps
    its URL, so a rollback finds it.

    Attributes:
        repository: the repository.
        platform: the platform that serves the repository.
        role: the execution role.
        max_payload: bytes of JSON that a request may have; None: Triton's own limit.

    Args:
        scope: the stack or construct that the model belongs to.
        id: the construct's id.
        repository: the repository. The name of its directory becomes part of the archive's URL. A role that may read
            one archive of that name may read all of them, so give each repository a name of its own.
        platform: release and instance type.
        store: the store that keeps the archive; by default a store of the stack's own.
        environment: how the container starts Triton; by default Triton loads the entry model, with the verbose log off.
        role: the execution role; by default a new one. The construct adds the permissions that the role needs.
        vpc: the VPC of the instances, through which they also download from S3; by default a VPC of SageMaker's.
        vpc_subnets: the subnets of the instances, at least two in different availability zones; by default the private
            subnets of the VPC.
        security_groups: the security groups of the instances, up to 5; by default a new one that allows all outbound
            and no inbound traffic.
        network_isolation: whether the containers are cut off from every network and get no AWS credentials. SageMaker
            still downloads the archive and forwards the requests.
        uncompressed: whether the instances download the repository's files without an archive, so that they unpack
            nothing. Use this for weights of many gigabytes, which hardly compress. Each file becomes a CDK asset.
        metadata: your notes about the model, such as `{"commit": …, "approver": …}`. The manifest of an archive has the
            metadata of the deployment that stored the archive. The tags of the SageMaker Model have the latest
            metadata. A change of metadata does not change the artifact key.
        max_payload: how large the JSON of a request may be, as a CDK `Size` up to 1 GiB, for asynchronous endpoints; by
            default Triton's own limit. The argument needs Triton 26.03 or newer. Triton's own limit is 64 MiB from
            25.06 on. Binary tensors do not count.

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
        repository: ModelRepository,
        platform: ServingPlatform,
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
        super().__init__(scope, id)
        stack_of(self)  # or a sentence that it needs one
        self.max_payload = payload_bytes(self, max_payload, platform)
        self.repository = repository
        self.platform = platform
        layout.check_name(repository.name, "the repository's directory")
        check_role(self, role)
        notes = check_metadata(self, metadata)
        self._network = model_network(self, vpc, vpc_subnets, security_groups)
        image = container_image(self, platform)
        assembly = CloudAssembly(self)
        home = store_of(self, store)
        self._service_token = home.service_token
        if uncompressed:
            reject_archives(repository, home)
        # Weights are read from here on.
        given = ContainerEnvironment() if environment is None else environment
        settings = with_max_payload(given, self.max_payload)
        checked = check_cached(repository, "single", platform, settings, uncompressed=uncompressed)
        sound = report(self, checked.findings, what=str(repository.root))
        recipes = check_recipes(self, repository, platform, what=str(repository.root))
        warn_about_host(self, platform)
        variables = container_variables(settings, multi_model=False, default_model=checked.entry_model)
        refuse_secrets(self, variables)

        pack = sound and recipes.sound
        if uncompressed:
            assert checked.keys is not None  # recipes were refused
            artifact = stage_files(assembly, repository, platform, checked.keys, pack=pack)
        else:
            ensemble = recipes.ensemble
            artifact = stage_artifact(assembly, repository, platform, ensemble, checked.keys, pack=pack, store=home)
        delivery = artifact_resource(
            self, assembly, home, {repository.name: artifact}, platform=platform, image=image, metadata=notes
        )
        self.role = execution_role(self, role)
        prefix = layout.archive_prefix(artifact.name)
        policy = grant_execution(self.role, self, home, prefix, image, self._network)
        self._execution = Execution(home, prefix, image, self._network, network_isolation)

        self._model = sagemaker_model(
            self,
            sagemaker.CfnModel.ContainerDefinitionProperty(
                image=image.uri,
                mode="SingleModel",
                model_data_url=None if uncompressed else home.bucket.s3_url_for_object(artifact.archive),
                model_data_source=_files(home.bucket, artifact) if uncompressed else None,
                environment=variables,
            ),
            role=self.role,
            policy=policy,
            delivery=delivery,
            network=self._network,
            network_isolation=network_isolation,
        )
        tag_model(self._model, notes, artifact.key)

    @staticmethod
    @checked
    def from_model_attributes(
        scope: Construct,
        id: str,
        *,
        model_name: str,
        platform: ServingPlatform,
        role: iam.IRole,
        size: int = 0,
    ) -> ImportedModel:
        """Import a model that exists in the scope's account and region, for a `TritonVariant`.

        Args:
            scope: the stack or construct that uses the model.
            id: the construct's id.
            model_name: the name of the SageMaker Model.
            platform: the release and instance type for which the model was made. SageMaker does not report them.
            role: the execution role of the model.
            size: bytes of the model's files before compression. The variant's default timeouts depend on this size, see
                `TritonVariant`.

        Raises:
            ConfigurationError: SageMaker does not accept the name.
        """
        return ImportedModel(scope, id, model_name=model_name, platform=platform, role=role, size=size)

    @property
    @jsii.member(jsii_name="grantPrincipal")
    def grant_principal(self) -> iam.IPrincipal:
        """The execution role, for grants such as `bucket.grant_read(model)`."""
        return self.role.grant_principal

    @property
    @jsii.member(jsii_name="connections")
    def connections(self) -> ec2.Connections:
        """The connections of the instances in their VPC.

        Raises:
            ConfigurationError: the model is not in a VPC.
        """
        return connections(self, self._network)

    @property
    def model_name(self) -> str:
        """The name of the SageMaker Model, which CloudFormation generates."""
        return self._model.attr_model_name

    @property
    def target_models(self) -> Mapping[str, str]:
        """Empty, because callers do not send a `TargetModel`."""
        return {}

    @property
    def is_multi_model(self) -> bool:
        """False."""
        return False

    @property
    def size(self) -> int:
        """The size of the repository's files before compression, in bytes."""
        return self.repository.size


def _files(bucket: s3.IBucket, artifact: Artifact) -> sagemaker.CfnModel.ModelDataSourceProperty:
    """Everything below a prefix; SageMaker gives each object the rest of its key as path below /opt/ml/model."""
    return sagemaker.CfnModel.ModelDataSourceProperty(
        s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
            compression_type="None", s3_data_type="S3Prefix", s3_uri=bucket.s3_url_for_object(artifact.archive)
        )
    )
