"""`TritonMultiModel`: many ensembles behind one multi-model endpoint."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from aws_cdk import CfnResource, Names
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton.artifacts.names import check_name
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.models.imported import ImportedModel
from cdk_triton.hosting.models.multi_model_warnings import warn_about_multi_model
from cdk_triton.hosting.models.publishing.grants import Served, grant_read_catalogue
from cdk_triton.hosting.models.publishing.required import require_publisher
from cdk_triton.hosting.models.served_model import ServedModel
from cdk_triton.hosting.naming.dependent_text import dependent_text
from cdk_triton.hosting.store.interface import ITritonArtifactStore
from cdk_triton.protocol import layout
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.sagemaker.platform import platform_of
from cdk_triton.triton import ContainerEnvironment, ModelRepository
from cdk_triton.triton.environment import container_variables
from cdk_triton.triton.shared_memory import with_shared_memory

if TYPE_CHECKING:
    from cdk_triton.artifacts.recipes.recipe import BuildRecipe
    from cdk_triton.hosting.models.publishing.publisher import TritonPublisher

__all__ = ["TritonMultiModel"]


class TritonMultiModel(ServedModel):
    """Ensembles that share the instances of one endpoint. An instance loads an ensemble at the first request for it.

    The SageMaker Model refers to a prefix of the store. If you add, change or drop an ensemble, the target models
    change, and the deployment copies archives to this prefix, but the SageMaker Model and the endpoint do not change.
    If you change the release or the GPU, the prefix changes and CloudFormation updates the endpoint, but the target
    models stay the same.

    A dropped ensemble stays callable as long as its archive exists. `TritonEndpoint.grant_invoke` restricts which
    ensembles a caller can invoke.

    Attributes:
        ensembles: name of an ensemble → its repository.
        name_in_store: the name of the model's prefix in the store, derived from the construct's path.
        platform: the platform that serves the ensembles.
        target_models: name of an ensemble → the name that callers send as `TargetModel`, as plain text. In another
            construct of the app, use `target_model(ensemble)`, which also makes CloudFormation deploy that construct
            after the archive is in place.
        role: the execution role.

    Args:
        scope: the stack or construct that the model belongs to.
        id: the construct's id.
        platform: the release and instance type, or the short form "25.09/ml.g5.2xlarge".
        ensembles: name of an ensemble → its repository, or the repository's directory. Each repository must contain one
            model, or one ensemble and the models that it uses. Ensembles in different repositories can have the same
            model name; all other models need different names. You can leave out this argument if the model has a
            publisher, which publishes ensembles without a deployment (see `add_publisher`).
        store: the store that keeps the archives; by default, the stack creates its own store.
        environment: how the container starts Triton; by default with the verbose log off.
        role: the execution role; by default a new role. The construct adds the permissions that the role needs.
        vpc: the VPC of the instances, through which they also download from S3; by default a VPC of SageMaker.
        vpc_subnets: the subnets of the instances, at least two in different availability zones; by default the private
            subnets of the VPC.
        security_groups: the security groups of the instances, up to 5; by default a new security group that allows all
            outbound and no inbound traffic.
        network_isolation: whether to cut the containers off from every network, and to give them no AWS credentials.
            SageMaker still downloads the archives and forwards the requests.
        model_cache: whether an instance keeps an ensemble loaded after a request. If False, the instance unloads the
            ensemble after each response, which may suit very many ensembles that are rarely called.
        metadata: your notes about the model, such as `{"commit": …, "approver": …}`. The file `manifest.json` beside an
            archive in the store contains the notes of the deployment that stored the archive, and the tags of the
            SageMaker Model contain the latest notes. The notes are not part of the artifact key.

    Raises:
        ConfigurationError: an argument is not valid. By argument:

            * `ensembles`: a name cannot be a `TargetModel`, or a directory's name cannot be part of an object key.
            * `platform`: SageMaker has no image of this release in the stack's region, or your own image is in another
              region.
            * `store`: the store cannot read the stack's assets; or a repository has recipes, but the store has no
              builder with the platform's GPU.
            * `environment`: a field does not fit a multi-model container, or the value of a variable is a secret that
              the template would show.
            * `role`: the role is in another account.
            * `vpc`: the VPC is in another region.
            * `vpc_subnets`, `security_groups`: `vpc` is missing, or SageMaker does not accept the subnets or groups.
            * `metadata`: an entry cannot be a tag.
        ArchiveError: an archive cannot be written.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        platform: ServingPlatform | str,
        ensembles: Mapping[str, ModelRepository | str | Path] = {},
        store: ITritonArtifactStore | None = None,
        environment: ContainerEnvironment | None = None,
        role: iam.IRole | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        network_isolation: bool = False,
        model_cache: bool = True,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        platform = platform_of(platform)
        repositories = _read(ensembles)
        for name, repository in repositories.items():
            check_name(name, "the ensemble")
            check_name(repository.name, "the repository's directory")
            _check_target_model(name, platform)
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
        if not repositories:
            require_publisher(
                self,
                [self],
                f"{self.node.path} has neither an ensemble nor a publisher, so its endpoint answers nothing: give at "
                "least one, as ensembles={'text': repository}, or call add_publisher()",
            )
        self.ensembles: Mapping[str, ModelRepository] = MappingProxyType(repositories)
        self.name_in_store = Names.unique_resource_name(self, separator="-", max_length=63).lower()
        self._uses_of_catalogue: list[Callable[[str], object]] = []
        self._environment = ContainerEnvironment() if environment is None else environment
        settings = with_shared_memory(self._environment, platform.release)
        artifacts = self._deliver(repositories, "multi", settings, multi_model=self.name_in_store)
        prepared = {name: each.prepared for name, each in artifacts.items()}
        variables = container_variables(settings, multi_model=True)
        warn_about_multi_model(self, platform, settings, variables, prepared)
        self.target_models: Mapping[str, str] = MappingProxyType(
            {name: layout.target_model(name, each.keys.source) for name, each in prepared.items()}
        )
        cache = None if model_cache else sagemaker.CfnModel.MultiModelConfigProperty(model_cache_setting="Disabled")
        prefix = layout.fleet_prefix(self.name_in_store, platform.label)
        self._serve(
            layout.fleet_prefix(self.name_in_store),
            {
                "mode": "MultiModel",
                "model_data_url": self._store.bucket.s3_url_for_object(prefix),
                "environment": variables,
                "multi_model_config": cache,
            },
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
        target_models: Mapping[str, str],
    ) -> ImportedModel:
        """Import a multi-model SageMaker Model that exists in the scope's account and region, for a `TritonVariant`.

        Args:
            scope: the stack or construct that uses the model.
            id: the construct's id.
            model_name: the name of the SageMaker Model.
            platform: the release and instance type for which the model was created, or the short form
                "25.09/ml.g5.2xlarge". SageMaker does not report these values.
            role: the execution role of the model.
            target_models: name of an ensemble → its `TargetModel`, such as `{"text": "text-0f3c9a81d2.tar.gz"}`.

        Raises:
            ConfigurationError: SageMaker does not accept the name.
        """
        return ImportedModel(
            scope, id, model_name=model_name, platform=platform, role=role, target_models=target_models
        )

    @checked
    def add_publisher(
        self,
        *,
        max_concurrency: int = 8,
        recipes: Sequence[BuildRecipe] = (),
        max_builds: int = 1,
        rehearse: bool = False,
        next_platform: ServingPlatform | str | None = None,
        runbook_url: str | None = None,
    ) -> TritonPublisher:
        """Add a state machine that publishes ensembles without a deployment, with its functions and an alarm.

        The state machine publishes ensembles, rolls them back and unpublishes them, and changes neither this stack nor
        the endpoint. A published ensemble cannot have the name of an ensemble in `ensembles`.

        Args:
            max_concurrency: how many ensembles the state machine changes at a time, 1 to 10,000. Each ensemble needs
                one of the account's concurrent Lambda executions, of which a new account has 10.
            recipes: the recipes for published repositories. A recipe applies to each repository that contains its
                model. The store's first builder with the platform's GPU runs the builds. Note for security: with
                recipes, every principal that may publish controls what a build does. Other stacks with the same
                artifact key use the archive that this principal's build has made.
            max_builds: how many builds the state machine runs at a time, 1 to 10,000. Use at most the account's quota
                for the service that runs the builds. `cdk-triton doctor` prints this quota.
            rehearse: whether a job rehearses a repository with golden requests before it is published. An ensemble that
                fails is reported, and the others are published. The store's first builder with the platform's GPU runs
                these jobs, of which `max_builds` run at a time.
            next_platform: the platform to which you will change. A second state machine publishes for the next platform
                while the present platform serves. Run `cdk-triton fleet publish --all --platform RELEASE/INSTANCE`,
                then change `platform` and remove this argument. No endpoint uses the next platform before that.
            runbook_url: the address of your own runbook, or of your copy of this guide's runbook. The alarms link to
                the section `#publisherfailures` of this page. The default is the context value `cdk-triton:runbookUrl`.
                Without an address, the descriptions contain the first step to take.

        Raises:
            ConfigurationError: the model already has a publisher; the store promotes from another store; a number is
                not within its bounds; the next platform serves the same archives as the present one; or the runbook's
                address is empty, has a fragment or is too long. With recipes also: a recipe is not from this library,
                two recipes write the same file, or the store has no builder with the platform's GPU or belongs to
                another app. With `rehearse`: the store has no such builder or belongs to another app, or a variable of
                the container is a token.
        """
        # A plain model takes no state machine.
        from cdk_triton.hosting.models.publishing.declared_recipes import declared_recipes
        from cdk_triton.hosting.models.publishing.platform_changes import check_platform_changes
        from cdk_triton.hosting.models.publishing.publisher import add_publisher

        publisher = add_publisher(
            self,
            self._served(),
            self._environment,
            max_concurrency=max_concurrency,
            recipes=lambda served: declared_recipes(
                self, served, recipes, max_builds, self._environment, rehearse=rehearse
            ),
            next_platform=None if next_platform is None else platform_of(next_platform),
            runbook_url=runbook_url,
        )
        check_platform_changes(self, self._served(), self._delivery)
        # If the delivery rejects a change of the platform, the deployment ends before it changes a publisher.
        for each in (publisher, publisher.next):
            if each is not None:
                each.node.add_dependency(self._delivery)
        for use in self._uses_of_catalogue:
            use(self._catalogue())
        return publisher

    @checked
    def grant_read_catalogue(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to read the catalogue of published ensembles, and nothing else of the store.

        Without a publisher, there is no catalogue, so `cdk synth` reports an error.
        """
        require_publisher(
            self,
            [self],
            f"grant_read_catalogue of {self.node.path} allows nothing, because the catalogue belongs to a publisher: "
            "call add_publisher(), or remove the grant",
        )
        return grant_read_catalogue(grantee, self._served())

    def _when_published(self, use: Callable[[str], object]) -> None:
        """Call `use` with the URI of the catalogue as soon as there is a publisher, or now if there is one."""
        self._uses_of_catalogue.append(use)
        if self._has_publisher:
            use(self._catalogue())

    @property
    def _has_publisher(self) -> bool:
        return self.node.try_find_child("Publisher") is not None

    def _catalogue(self) -> str:
        prefix = layout.catalogue_prefix(self.name_in_store, self.platform.label)
        return f"s3://{self._store.bucket.bucket_name}/{prefix}"

    def _served(self) -> Served:
        return Served(self._store, self.name_in_store, self.platform)

    @property
    def is_multi_model(self) -> bool:
        """True, because callers name a target model."""
        return True

    @property
    def size(self) -> int:
        """0, because an instance starts without a model.

        The default timeouts in the endpoint configuration depend on the size, so ensembles do not change them.
        """
        return 0

    @checked
    def target_model(self, ensemble: str) -> str:
        """The name that a caller sends as `TargetModel` to reach an ensemble, for another construct of the app.

        The name is a token, which resolves to a text such as `text-0f3c9a81d2.tar.gz`. A resource that uses the token
        is deployed after the endpoint can load the archive, even if the resource is in another stack. `target_models`
        contains the names as plain text, for programs that read them during synthesis.

        Raises:
            ConfigurationError: the model does not have the ensemble.
        """
        if ensemble not in self.target_models:
            declared = ", ".join(map(repr, self.target_models))
            fix = f"use one of {declared}" if declared else "it declares none, and the catalogue has the published ones"
            raise ConfigurationError(f"{self.node.path} has no ensemble {ensemble!r}: {fix}")
        delivery = self._delivery.node.default_child
        assert isinstance(delivery, CfnResource)  # as CDK makes it
        return dependent_text(self.target_models[ensemble], delivery)


def _read(ensembles: Mapping[str, ModelRepository | str | Path]) -> dict[str, ModelRepository]:
    """The repositories by ensemble. Ensembles with the same directory share one, which is read once."""
    read = functools.cache(ModelRepository.from_directory)
    return {name: each if isinstance(each, ModelRepository) else read(each) for name, each in ensembles.items()}


def _check_target_model(name: str, platform: ServingPlatform) -> None:
    # ValidateModelName in src/model_repository_manager/model_repository_manager.cc of core (66f09f8), on branch r26.03
    # only: 50830ba, on r26.04, takes such names. It checks the loaded name but not those of an ensemble's steps, as
    # bc4695e would, which is on no branch.
    if ".." in name and platform.release == "26.03":
        raise ConfigurationError(
            f"the ensemble {name!r} has '..' in its name, so Triton 26.03 would load none of its archives (\"model "
            'name must not contain path traversal characters"): rename the ensemble, or serve with 26.04 or newer'
        )
