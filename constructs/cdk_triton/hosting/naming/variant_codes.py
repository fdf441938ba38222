"""The codes of findings about the variants of an endpoint together."""

from __future__ import annotations

from typing import Final

from cdk_triton.checks.documentation import ConstructCode

__all__ = ["VARIANT_CODES"]

VARIANT_CODES: Final = (
    ConstructCode(
        "cdk-triton:ShadowWithoutCopies",
        "the shadow of an endpoint has the weight 0",
        "SageMaker copies no request to the shadow, but you pay for its instances. Give it a positive initial_weight, "
        "or remove it.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:StateOnSeveralInstances",
        "a model with a sequence batcher may run on several instances or copies",
        "SageMaker sends each request to any instance or copy, which does not know the state of another one. Serve "
        "such a model as a single model on one variant with one instance, or in a component with one copy, and without "
        "scaling.",
        "Calling an endpoint",
    ),
    ConstructCode(
        "cdk-triton:VariantsInDifferentNetworks",
        "the models of an endpoint's variants differ in subnets or isolation",
        "AWS does not document whether one endpoint accepts such models. Give them the same network, or try "
        "create-endpoint-config with both, which starts no instance.",
        "Network and data",
    ),
    ConstructCode(
        "cdk-triton:VariantsServeDifferentModels",
        "variants of one endpoint serve different target models",
        "A request that names no variant fails if it reaches a variant without its target model. Give all variants "
        "but one the weight 0, and let callers name the variant.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:VariantsSpeakDifferentProtocols",
        "the containers of an endpoint's variants differ in inference_type",
        "The requests of one inference_type are errors for a container of another one, and SageMaker sends a request "
        "to any variant that has a weight, and its copy to the shadow. Give all models the same inference_type, or "
        "serve them on two endpoints.",
        "Calling an endpoint",
    ),
)
