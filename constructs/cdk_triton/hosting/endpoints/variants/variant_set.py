"""The checks of the variants of one endpoint together."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aws_cdk import Annotations, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from cdk_triton._wording import in_words, listed_in_quotes
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import require_symmetric
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.naming.acknowledgements import acknowledge_nist
from cdk_triton.hosting.naming.literals import is_token
from cdk_triton.hosting.naming.stacks import are_deployed_together, require_same, root_stack, stack_of
from cdk_triton.sagemaker import instance_storage
from cdk_triton.sagemaker.limits import MAX_PRODUCTION_VARIANTS

__all__ = [
    "acknowledge_local_disks",
    "check_environments",
    "check_shadow",
    "production_variants",
    "warn_about_networks",
    "warn_about_protocols",
    "warn_about_shadow",
    "warn_about_stacks",
    "warn_about_storage",
    "warn_about_target_models",
]

VOLUME_SIZE_WARNING = "cdk-triton:VolumeSize"
DIFFERENT_MODELS_WARNING = "cdk-triton:VariantsServeDifferentModels"
SHADOW_WARNING = "cdk-triton:ShadowWithoutCopies"
STACKS_WARNING = "cdk-triton:ModelInAnotherStack"
KEY_WARNING = "cdk-triton:EncryptionKeyOfLocalDisks"
NETWORKS_WARNING = "cdk-triton:VariantsInDifferentNetworks"
PROTOCOLS_WARNING = "cdk-triton:VariantsSpeakDifferentProtocols"


def production_variants(
    model: ITritonModel | None, variants: Sequence[TritonVariant] | None
) -> tuple[TritonVariant, ...]:
    """The production variants that an endpoint was given, by either of the two arguments.

    Raises:
        ConfigurationError: both or neither of the two are given, two variants have the same name, there are more
            variants than SageMaker accepts, or no variant has a weight.
    """
    if (model is None) == (variants is None):
        given = "neither model= nor variants=" if model is None else "both model= and variants="
        raise ConfigurationError(f"a TritonEndpoint got {given}: give exactly one of the two")
    found = (TritonVariant(model=model),) if model is not None else tuple(variants or ())
    if not 1 <= len(found) <= MAX_PRODUCTION_VARIANTS:
        raise ConfigurationError(
            f"an endpoint has {len(found)} variants: SageMaker takes 1 to {MAX_PRODUCTION_VARIANTS}"
        )
    _check_names(found)
    weights = [variant.initial_weight for variant in found]
    if not any(is_token(weight) or weight > 0 for weight in weights):
        raise ConfigurationError(
            "initial_weight is 0 for every variant, so no request would be answered: give at least one variant a "
            "positive initial_weight"
        )
    return found


def check_shadow(shadow: TritonVariant, production: Sequence[TritonVariant]) -> None:
    """Reject a shadow that SageMaker would reject.

    One production variant and one shadow: API reference, CreateEndpointConfig, `ShadowProductionVariants`. No
    multi-model endpoints: "Exclusions" of shadow tests in SageMaker's developer guide. No instance pools: the guide
    names single-model endpoints and inference components (realtime-endpoints-heterogeneous), and no page mentions both.

    Raises:
        ConfigurationError: SageMaker would reject the shadow.
    """
    if len(production) > 1:
        raise ConfigurationError(
            f"the endpoint has the shadow {shadow.variant_name!r} beside {len(production)} production variants, but "
            "SageMaker takes one production variant and one shadow: keep one production variant, and move the other "
            "variants to another endpoint"
        )
    if pooled := [variant.variant_name for variant in (*production, shadow) if variant.fallback_models]:
        raise ConfigurationError(
            f"the endpoint has the shadow {shadow.variant_name!r} and fallback_models for "
            f"{' and '.join(map(repr, pooled))}, but AWS documents instance pools only for endpoints without shadow "
            "variants: remove fallback_models while you compare the models"
        )
    multi_models = [variant.variant_name for variant in (*production, shadow) if variant.model.is_multi_model]
    if multi_models:
        raise ConfigurationError(
            f"the endpoint has the shadow {shadow.variant_name!r}, but the model of "
            f"{' and '.join(map(repr, multi_models))} is a TritonMultiModel, and SageMaker copies requests between "
            "single models only: compare one ensemble as a TritonModel on another endpoint"
        )
    _check_names((*production, shadow))
    weights = (shadow.initial_weight, production[0].initial_weight)
    if not any(map(is_token, weights)) and weights[0] > weights[1]:
        raise ConfigurationError(
            f"initial_weight of the shadow {shadow.variant_name!r} is {weights[0]:g}, but initial_weight of "
            f"{production[0].variant_name!r} is {weights[1]:g}, and the share of the requests that SageMaker copies is "
            f"the shadow's weight divided by the other weight: give the shadow at most {weights[1]:g}, with which "
            "SageMaker copies every request"
        )


def warn_about_shadow(construct: IConstruct, shadow: TritonVariant | None) -> None:
    """Warn about a shadow that gets no copies of requests but costs money."""
    if shadow is not None and shadow.initial_weight == 0:
        Annotations.of(construct).add_warning_v2(
            SHADOW_WARNING,
            f"initial_weight of the shadow {shadow.variant_name!r} is 0, so SageMaker copies no request to its "
            "instances, which still cost money: give the shadow a positive weight, omit shadow=, or acknowledge this",
        )


def warn_about_storage(
    construct: IConstruct, variants: Sequence[TritonVariant], encryption_key: kms.IKey | None
) -> None:
    """Warn about a volume's size or key if an instance type has local disks instead of a volume.

    A key is not an error, because the sources differ: according to CloudFormation's reference of `KmsKeyId`,
    CreateEndpointConfig fails with such an instance type. According to the newer API reference, the key does not
    encrypt its disks. And some organisations allow no endpoint configuration without a key
    (aws/sagemaker-python-sdk#3677).
    """
    for variant in variants:
        if variant.volume_size is not None and (types := _types_with_disks([variant])):
            Annotations.of(construct).add_warning_v2(
                VOLUME_SIZE_WARNING,
                f"variant {variant.variant_name!r} has a volume_size, but {', '.join(types)} has "
                "NVMe disks of its own, and as far as is known, SageMaker rejects a volume size for such types. "
                "Remove volume_size, or try the volume size in your account, then acknowledge this",
            )
    if encryption_key is not None and (types := _types_with_disks(variants)):
        Annotations.of(construct).add_warning_v2(
            KEY_WARNING,
            f"encryption_key does not encrypt the NVMe disks of {', '.join(types)}: the instance encrypts its disks "
            "with a key of its own, and SageMaker may reject an endpoint configuration that names a key. Remove "
            "encryption_key, or acknowledge this if your organisation requires a key and SageMaker accepts the key in "
            "your account",
        )


def _types_with_disks(variants: Sequence[TritonVariant]) -> tuple[str, ...]:
    """The distinct instance types that have disks of their own."""
    platforms = [model.platform for variant in variants for model in variant.models]
    return tuple(dict.fromkeys(each.instance_type for each in platforms if instance_storage(each.instance).is_local))


def warn_about_networks(construct: IConstruct, variants: Sequence[TritonVariant]) -> None:
    """Warn if models differ in subnets or isolation. AWS neither allows nor forbids that, and no example does it.

    Security groups can differ: each model in a VPC has its own by default.
    """
    models = [(variant.variant_name, model) for variant in variants for model in variant.models]
    if len(models) == 1:
        return
    known = [(name, settings) for name, model in models if (settings := _network_settings(model)) is not None]
    if len({settings for _, settings in known}) > 1:
        names = dict.fromkeys(name for name, _ in known)
        Annotations.of(construct).add_warning_v2(
            NETWORKS_WARNING,
            f"the models of {'variants' if len(names) > 1 else 'variant'} {in_words(map(repr, names), 'and')} differ "
            "in their subnets or in network_isolation, but AWS does not document whether one endpoint accepts such "
            "models. Give the models the same values. Or try `aws sagemaker create-endpoint-config`, which does not "
            "start an instance, and acknowledge this if AWS accepts the configuration",
        )


def _network_settings(model: ITritonModel) -> str | None:
    """A comparable text of a model's subnets and isolation; None for a model of a user's own class."""
    resource = model.node.default_child
    if not isinstance(resource, sagemaker.CfnModel):
        return None
    network = stack_of(resource).resolve(resource.vpc_config)
    subnets = sorted(map(json.dumps, network["subnets"])) if network else None
    return json.dumps([subnets, bool(resource.enable_network_isolation)])


def warn_about_protocols(construct: IConstruct, variants: Sequence[TritonVariant]) -> None:
    """Warn if a request, or its copy for the shadow, may reach a container that does not read it.

    Variants without weight get only the requests that name them. Of models that are not of this library, the
    inference type is not known.
    """
    reached = [variant for variant in variants if is_token(variant.initial_weight) or variant.initial_weight > 0]
    models = [(variant.variant_name, model) for variant in reached for model in variant.models]
    spoken: dict[str, dict[str, None]] = {}
    for name, model in models:
        inference_type = "infer" if model.is_multi_model else getattr(model, "inference_type", None)
        if inference_type is not None:
            spoken.setdefault(inference_type, {})[name] = None
    if len(spoken) > 1:
        shown = [f"{each!r} in {in_words(map(repr, names), 'and')}" for each, names in spoken.items()]
        Annotations.of(construct).add_warning_v2(
            PROTOCOLS_WARNING,
            f"the inference_type is {in_words(shown, 'but')}, and a container answers the requests of another "
            "inference_type with an error or in another form. Give all models the same inference_type, or give one "
            "variant the weight 0 and let callers name the variant, or serve the models on two endpoints",
        )


def acknowledge_local_disks(config: IConstruct, variants: Sequence[TritonVariant]) -> None:
    """Acknowledge a configuration without a key if an instance type does not support a key."""
    if types := _types_with_disks(variants):
        reason = (
            f"CreateEndpointConfig fails with a KmsKeyId for instance types with disks of their own, such as "
            f"{', '.join(types)}. Such an instance encrypts its disks with its own key (CloudFormation's reference)."
        )
        acknowledge_nist(config, {"SageMakerEndpointConfigurationKMSKeyConfigured": reason})


def warn_about_target_models(construct: IConstruct, production: Sequence[TritonVariant]) -> None:
    """Warn if a request that names no variant may reach a variant that does not have its target model.

    For example, only one of two multi-model variants has the new version of an ensemble, or one of two variants has a
    single model.
    """
    reached = [v for v in production if is_token(v.initial_weight) or v.initial_weight > 0]
    served = [set(variant.model.target_models.values()) for variant in reached]
    everywhere = set.intersection(*served)
    partial = sorted(set.union(*served) - everywhere)
    if partial:
        shown = listed_in_quotes(partial, shown=3)
        Annotations.of(construct).add_warning_v2(
            DIFFERENT_MODELS_WARNING,
            f"a request that names no variant goes to {in_words(repr(v.variant_name) for v in reached)}, but "
            f"not every one of these variants serves {shown}, so a request for such a target model may fail. Give all "
            "variants but one the weight 0 and let callers name the variant, or acknowledge this if callers always do",
        )


def check_environments(
    scope: Construct, path: str, variants: Sequence[TritonVariant], encryption_key: kms.IKey | None
) -> None:
    """Reject models and a key that SageMaker would not find.

    Args:
        scope: the scope of the endpoint, which does not exist yet.
        path: the endpoint's path.
        variants: the variants whose models are checked, including a shadow.
        encryption_key: the KMS key of the instances' volumes.

    Raises:
        ConfigurationError: a model is certainly in another account or region, or the key is in another region or is not
            symmetric.
    """
    here = stack_of(scope)
    reason = (
        "SageMaker finds models of an endpoint's own account and region only: create the model in the account and "
        "region of the endpoint"
    )
    for model in (model for variant in variants for model in variant.models):
        there = _stack_of_model(model)
        if not are_deployed_together(here, there):
            require_same("account", path, here.account, model.node.path, there.account, reason)
            require_same("region", path, here.region, model.node.path, there.region, reason)
    if encryption_key is not None:
        require_symmetric(encryption_key, f"encryption_key of {path}")
        reason = f"volumes are encrypted with a key of their own region: use a key in {here.region}"
        require_same("region", path, here.region, encryption_key.node.path, encryption_key.env.region, reason)


def warn_about_stacks(construct: IConstruct, variants: Sequence[TritonVariant]) -> None:
    """Warn about a model that is not in the endpoint's stack, because it can be created but never changed.

    A changed model has another name, which its stack would export while the endpoint's stack still imports the old
    name. CloudFormation rejects that. With a weak reference of the CDK, CloudFormation would delete the old model while
    the endpoint runs it, or while a rollback may need it.
    """
    here = stack_of(construct)
    for model in (model for variant in variants for model in variant.models):
        there = _stack_of_model(model)
        if not are_deployed_together(here, there):
            Annotations.of(construct).add_warning_v2(
                STACKS_WARNING,
                f"the endpoint is in the stack {root_stack(here).node.path}, but its model {model.node.path} is in the "
                f"stack {root_stack(there).node.path}. A changed model gets another name, and CloudFormation rejects "
                "the change of a value that another stack imports, so every change of the model will fail. Put "
                "endpoint and model into one stack; callers may be in any stack",
            )


def _stack_of_model(model: ITritonModel) -> Stack:
    """The stack of a model, which for a user's own ITritonModel is that of its node."""
    return stack_of(model if isinstance(model, Construct) else model.node.scopes[-1])


def _check_names(variants: Sequence[TritonVariant]) -> None:
    names = [variant.variant_name for variant in variants]
    if len(set(names)) < len(names):
        raise ConfigurationError(
            f"the variants are called {in_words(map(repr, names), 'and')}: give each variant of the endpoint its own "
            "variant_name"
        )
