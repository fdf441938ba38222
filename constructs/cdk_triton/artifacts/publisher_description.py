"""The description of a publisher, in the template of its stack: what `cdk-triton fleet` needs to make the same keys.

It is in the metadata of the state machine, which `GetTemplate` returns, so it changes only with the publisher. A
publisher with recipes has the same document among the assets, where the function that builds reads a part of it
(`protocol.publisher`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from cdk_triton.artifacts.keys import key_inputs
from cdk_triton.artifacts.program import PROGRAM_VERSION, REHEARSAL_VERSION
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.documents import DocumentError, require_schema
from cdk_triton.protocol.plan import BuildMachine
from cdk_triton.protocol.publication import UploadedRehearsal
from cdk_triton.protocol.publisher import BuildingPublisher, DeclaredBuilds
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from cdk_triton.artifacts.recipes.documents import DeclaredRecipe

__all__ = ["PUBLISHER_METADATA", "PublisherDescription", "parse_serving", "platform_name", "serving_document"]

PUBLISHER_METADATA: Final = "cdk-triton:Publisher"
"""The key in the metadata of a publisher's state machine."""

_CHECKED_VARIABLE: Final = "PYTHONPATH"
"""The one of the models' own variables on which rules depend."""


def platform_name(platform: ServingPlatform) -> str:
    """A platform as `--platform` names it: RELEASE/INSTANCE, or its label if it has an image of your own."""
    return platform.label if platform.image is not None else f"{platform.release}/{platform.instance_type}"


@dataclass(frozen=True)
class PublisherDescription:
    """A publisher.

    Attributes:
        multi_model: the path of its `TritonMultiModel` within the stack.
        fleet: the name of the `TritonMultiModel` in the store.
        platform: what serves the ensembles.
        environment: how the container starts Triton, which some rules depend on.
        max_concurrency: how many ensembles the state machine changes at a time.
        recipes: each applies to the repositories that have its model.
        builder: the machine that builds and rehearses; None if there is nothing to build and to rehearse.
        max_builds: how many builds the state machine runs at a time.
        is_next: whether the endpoint does not serve the platform yet.
        rehearse: whether repositories with golden requests are rehearsed.
        variables: the variables for the models' own use, for rehearsals; empty without them.
        rehearsal_version: the version of rehearsals in the build program.
    """

    multi_model: str
    fleet: str
    platform: ServingPlatform
    environment: ContainerEnvironment
    max_concurrency: int
    recipes: tuple[DeclaredRecipe, ...] = ()
    builder: BuildMachine | None = None
    max_builds: int = 1
    is_next: bool = False
    rehearse: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    rehearsal_version: int = REHEARSAL_VERSION

    def document(self) -> dict[str, Any]:
        """The description as JSON."""
        return {
            "schema": BuildingPublisher.SCHEMA,
            "multi_model": self.multi_model,
            "fleet": self.fleet,
            **serving_document(self.platform, self.environment),
            "max_concurrency": self.max_concurrency,
            "keys": asdict(key_inputs(self.platform)),
            **({} if self.builder is None else {"builds": self._builds(self.builder).text().decode()}),
            **({"is_next": True} if self.is_next else {}),
            **({"variables": dict(self.variables)} if self.variables else {}),
        }

    @property
    def rehearsed_environment(self) -> ContainerEnvironment:
        """How the container starts Triton in a rehearsal, with the variables for the models' own use."""
        return replace(self.environment, variables=self.variables)

    def rehearsal_key(self, rehearsal: UploadedRehearsal, artifact_key: str) -> str:
        """The key of the rehearsal of an archive."""
        return rehearsal.key(
            artifact_key=artifact_key,
            image=self.platform.image_identity,
            instance_type=self.platform.instance_type,
            program=self.rehearsal_version,
        )

    def _builds(self, builder: BuildMachine) -> DeclaredBuilds:
        from cdk_triton.artifacts.recipes.documents import recipe_document

        recipes = tuple(map(recipe_document, self.recipes))
        rehearses = self.platform.instance_type if self.rehearse else None
        return DeclaredBuilds(
            self.platform.label, PROGRAM_VERSION, builder, self.max_builds, recipes, rehearses, self.rehearsal_version
        )

    @classmethod
    def parse(cls, document: Mapping[str, Any], where: str) -> PublisherDescription:
        """Read what `document` wrote.

        Args:
            document: the description.
            where: the publisher, for the message.

        Raises:
            ConfigurationError: another version of the library wrote it, and computes different keys.
        """
        from cdk_triton.artifacts.recipes.documents import parse_recipe

        try:
            require_schema(document, BuildingPublisher.SCHEMA)
            platform, environment = parse_serving(document)
            concurrency = int(document["max_concurrency"])
            builds = DeclaredBuilds.parse(document["builds"]) if "builds" in document else None
            found = cls(
                document["multi_model"],
                document["fleet"],
                platform,
                environment,
                concurrency,
                recipes=() if builds is None else tuple(map(parse_recipe, builds.recipes)),
                builder=None if builds is None else builds.builder,
                max_builds=1 if builds is None else builds.max_builds,
                is_next=bool(document.get("is_next")),
                rehearse=builds is not None and builds.rehearses is not None,
                variables=dict(document.get("variables", {})),
                rehearsal_version=REHEARSAL_VERSION if builds is None else builds.rehearsal_version,
            )
            keys = document["keys"]
        except (DocumentError, ConfigurationError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(
                f"another version of cdk-triton has deployed the publisher {where} ({_reason(error)}): install that "
                "version, or deploy the publisher's stack with this version"
            ) from error
        # The keys of recipes also contain the version of the build program.
        program = PROGRAM_VERSION if builds is None else builds.program
        if keys != asdict(key_inputs(platform)) or program != PROGRAM_VERSION:
            raise ConfigurationError(
                f"the publisher {where} computes other artifact keys than this version of cdk-triton: install the "
                "version that deployed the publisher, or deploy the publisher's stack with this version"
            )
        return found


def serving_document(platform: ServingPlatform, environment: ContainerEnvironment) -> dict[str, Any]:
    """What serves repositories, as JSON: the part on which the checks and the keys depend."""
    # The registry of an image may be an unresolved token, and no key depends on it.
    image = None if platform.image is None else f"image@{platform.image_identity}"
    return {
        "platform": _given({"instance_type": platform.instance_type, "release": platform.release, "image": image}),
        "environment": {
            each.name: _plain(getattr(environment, each.name))
            for each in fields(ContainerEnvironment)
            if each.name != "variables" and getattr(environment, each.name) != each.default
        }
        | _checked_variables(environment),
    }


def _checked_variables(environment: ContainerEnvironment) -> dict[str, Any]:
    """The variable on which rules depend, without its value, which may be an unresolved token."""
    return {"variables": {_CHECKED_VARIABLE: ""}} if _CHECKED_VARIABLE in environment.variables else {}


def parse_serving(document: Mapping[str, Any]) -> tuple[ServingPlatform, ContainerEnvironment]:
    """The platform and the environment that `serving_document` wrote.

    Raises:
        ConfigurationError, LookupError, TypeError, AttributeError: another version of the library wrote it.
    """
    settings = {name: _frozen(value) for name, value in document.get("environment", {}).items()}
    return ServingPlatform(**document["platform"]), ContainerEnvironment(**settings)


def _reason(error: Exception) -> str:
    """A KeyError has only the missing name."""
    return f"no entry {error}" if isinstance(error, KeyError) else str(error)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
