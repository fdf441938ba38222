"""The example app: the published reference systems, a stack each, and the artifact store that they share.

`cdk deploy TritonArtifacts TwoEnsembles` puts two ensembles behind one multi-model endpoint, `cdk deploy
ImageClassification` one of them behind a single-model endpoint. Both stacks use the store, which goes first.
"""

from __future__ import annotations

import sys

try:
    import aws_cdk as cdk
    from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks
    from constructs import Construct
except ImportError as error:
    # Without the distribution `constructs`, the name means the directory of the same name beside this file.
    sys.exit(
        f"app.py: {error}\nThe environment lacks a package of this app: run `make setup` and put .venv/bin on PATH."
    )

from cdk_triton import ModelRepository
from examples.reference_systems.artifacts import Artifacts
from examples.reference_systems.assets import ASSETS, PREPARED
from examples.reference_systems.image_classification import ImageClassification
from examples.reference_systems.onnx_models import OnnxModels
from examples.reference_systems.pytorch_network import NETWORK, PyTorchNetwork
from examples.reference_systems.tensorrt_tenants import TensorRTTenants
from examples.reference_systems.text_generation import TextGeneration, TextStreaming
from examples.reference_systems.tree_models import TreeModels
from examples.reference_systems.two_ensembles import TwoEnsembles, text_repository


def add_stacks(scope: Construct, *, text: ModelRepository | None = None) -> None:
    """The store and the stacks that use it; `text` in place of the text ensemble."""
    store = Artifacts(scope, "TritonArtifacts").store
    TwoEnsembles(scope, "TwoEnsembles", store=store, text=text_repository() if text is None else text)
    ImageClassification(scope, "ImageClassification", store=store)
    OnnxModels(scope, "OnnxModels", store=store)
    TensorRTTenants(scope, "TensorRTTenants", store=store)
    TextGeneration(scope, "TextGeneration", store=store)
    TextStreaming(scope, "TextStreaming", store=store)
    TreeModels(scope, "TreeModels", store=store)
    if NETWORK.exists():
        PyTorchNetwork(scope, "PyTorchNetwork", store=store)


def main() -> None:
    """Synthesise the app; the CDK CLI sets the directory."""
    missing = [name for name in PREPARED if not (ASSETS / name).exists()]
    if missing:
        sys.exit(
            f"app.py: the weights of the reference systems are not prepared ({ASSETS / missing[0]} is missing): run "
            "`python model_assets/prepare.py`"
        )
    app = cdk.App()
    add_stacks(app)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), NIST80053R5Checks(app))
    app.synth()


if __name__ == "__main__":
    main()
