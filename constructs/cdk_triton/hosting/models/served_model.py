"""The common part of `TritonModel` and `TritonMultiModel`: prepare → report → stage → resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import Resource
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton.artifacts.prepare import Prepared, prepare
from cdk_triton.artifacts.served_repositories import SERVED_METADATA, served_document
from cdk_triton.hosting.access.images import container_image
from cdk_triton.hosting.access.network import connections, model_network
from cdk_triton.hosting.models.assets import Artifact, CloudAssembly, stage
from cdk_triton.hosting.models.delivery import artifact_resource
from cdk_triton.hosting.models.downloads import warn_about_downloads
from cdk_triton.hosting.models.execution_role import Execution, check_role, execution_role, grant_execution
from cdk_triton.hosting.models.metadata import check_metadata, tag_model
from cdk_triton.hosting.models.platform_warnings import warn_about_platform
from cdk_triton.hosting.models.rehearsals import REHEARSAL_ERROR, rehearses
from cdk_triton.hosting.models.sagemaker_model import sagemaker_model
from cdk_triton.hosting.models.secrets import reject_secrets
from cdk_triton.hosting.naming.findings import report, report_errors, report_not_read
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.hosting.store.interface import ITritonArtifactStore
from cdk_triton.hosting.store.store_of_model import store_of
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment, Mode, ModelRepository
from cdk_triton.triton.environment import container_variables
from cdk_triton.triton.findings import NotRead

__all__ = ["ServedModel"]

RECIPE_ERROR = "cdk-triton:Recipe"


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class ServedModel(Resource):
    """A SageMaker Model whose repositories go through a store.

    Attributes:
        platform: the platform that serves the model.
        role: the execution role.
    """

    role: iam.IRole
    _model: sagemaker.CfnModel

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        platform: ServingPlatform,
        store: ITritonArtifactStore | None,
        role: iam.IRole | None,
        vpc: ec2.IVpc | None,
        vpc_subnets: ec2.SubnetSelection | None,
        security_groups: Sequence[ec2.ISecurityGroup] | None,
        network_isolation: bool,
        metadata: Mapping[str, str] | None,
    ) -> None:
        super().__init__(scope, id)
        stack_of(self)  # or a sentence that it needs one
        self.platform = platform
        check_role(self, role)
        self._given_role = role
        self._metadata = check_metadata(self, metadata)
        self._network = model_network(self, vpc, vpc_subnets, security_groups)
        self._network_isolation = network_isolation
        self._image = container_image(self, platform)
        self._assembly = CloudAssembly(self)
        self._store = store_of(self, store)

    def _deliver(
        self,
        repositories: Mapping[str, ModelRepository],
        mode: Mode,
        settings: ContainerEnvironment,
        *,
        multi_model: str | None = None,
        uncompressed: bool = False,
    ) -> Mapping[str, Artifact]:
        """Check the repositories, stage their archives, and make the store take them.

        Args:
            repositories: the repositories by ensemble; only a multi-model endpoint uses the names.
            mode: how an endpoint serves the repositories.
            settings: the container's settings.
            multi_model: the name of a multi-model endpoint's prefix in the store.
            uncompressed: whether the endpoint serves the files without an archive.
        """
        reject_secrets(self, container_variables(settings, multi_model=mode == "multi"))
        prepared = self._prepare(repositories, mode, settings, uncompressed=uncompressed)
        self._stateful_models = tuple(sorted({name for each in prepared.values() for name in each.stateful_models}))
        warn_about_platform(self, self.platform)
        warn_about_downloads(self, settings, prepared.values())
        promotes = self._store.promotes_from is not None
        if prepared:
            served = served_document(prepared, mode, settings, self._assembly.outdir, promotes=promotes)
            self.node.add_metadata(SERVED_METADATA, served)
        pack = all(each.is_sound for each in prepared.values())
        artifacts = {
            name: stage(self._assembly, prepared[name], promotes=promotes, pack=pack, uncompressed=uncompressed)
            for name in repositories
        }
        self._delivery = artifact_resource(
            self,
            self._assembly,
            self._store,
            artifacts,
            platform=self.platform,
            image=self._image,
            multi_model=multi_model,
            metadata=self._metadata,
        )
        return artifacts

    def _prepare(
        self,
        repositories: Mapping[str, ModelRepository],
        mode: Mode,
        settings: ContainerEnvironment,
        *,
        uncompressed: bool,
    ) -> Mapping[str, Prepared]:
        """Prepare each repository once, and report what is wrong with it; see `_deliver`."""
        labels = _labels(repositories, mode)
        labelled = {what: repositories[names[0]] for what, names in labels.items()}
        golden = [what for what, repository in labelled.items() if repository.rehearsal is not None]
        rehearse = rehearses(self, golden, settings, uncompressed=uncompressed)
        not_read: dict[str, Sequence[NotRead]] = {}
        prepared: dict[str, Prepared] = {}  # weights are read from here on
        for what, repository in labelled.items():
            found = prepare(
                repository,
                mode,
                self.platform,
                settings,
                uncompressed=uncompressed,
                network_isolation=self._network_isolation,
                rehearse=rehearse,
            )
            report(self, found.findings, what=what)
            not_read[what] = found.not_read
            errors = [(RECIPE_ERROR, f"{what}: {error}") for error in found.errors]
            if found.rehearsal_error is not None:
                errors.append((REHEARSAL_ERROR, f"{what} cannot be rehearsed: {found.rehearsal_error}"))
            report_errors(self, errors)
            prepared |= dict.fromkeys(labels[what], found)
        report_not_read(self, not_read)
        return prepared

    def _serve(self, prefix: str, container: Mapping[str, object], artifact_key: str | None = None) -> None:
        """Create the role and the SageMaker Model.

        Args:
            prefix: the prefix of the object keys that instances read.
            container: the container's mode, its variables and the location of its model.
            artifact_key: the key of the archive, for a model with a single one.
        """
        self.role = execution_role(self, self._given_role)
        policy = grant_execution(self.role, self, self._store, prefix, self._image, self._network)
        self._execution = Execution(self._store, prefix, self._image, self._network, self._network_isolation)
        self._model = sagemaker_model(
            self,
            sagemaker.CfnModel.ContainerDefinitionProperty(image=self._image.uri, **container),  # type: ignore[arg-type]
            role=self.role,
            policy=policy,
            delivery=self._delivery,
            network=self._network,
            network_isolation=self._network_isolation,
        )
        tag_model(self._model, self._metadata, artifact_key)

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


def _labels(repositories: Mapping[str, ModelRepository], mode: Mode) -> Mapping[str, Sequence[str]]:
    """The names of each repository, by how messages call it, so that the findings about it are reported once."""
    names: dict[int, list[str]] = {}
    for name, repository in repositories.items():
        names.setdefault(id(repository), []).append(name)
    return {_label(repositories[each[0]], each, mode): each for each in names.values()}


def _label(repository: ModelRepository, names: Sequence[str], mode: Mode) -> str:
    if mode == "single":
        return str(repository.root)
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{others} ({repository.root})"
