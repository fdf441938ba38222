"""The example app: the artifact store, and one stack per way to serve the reference ensembles.

`cdk deploy TritonArtifacts TwoEnsembles` puts both ensembles behind one multi-model endpoint, `cdk deploy
ImageClassification` one of them behind a single-model endpoint. Both stacks use the store, which goes first.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import aws_cdk as cdk
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_sns as sns
    from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks
    from constructs import Construct
except ImportError as error:
    # Without the distribution `constructs`, the name means the directory of the same name beside this file.
    sys.exit(
        f"app.py: {error}\nThe environment lacks a package of this app: run `make setup` and put .venv/bin on PATH."
    )

from cdk_triton import (
    CodeBuildGpuBuilder,
    ContainerEnvironment,
    ModelRepository,
    Parity,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
)
from cdk_triton.errors import CdkTritonError

ASSETS = Path(__file__).parent / "model_assets"
PREPARED = (
    "sentence_embedding/tokenizer/1/tokenizer.json",
    "sentence_embedding/tokenizer/1/vendor",
    "sentence_embedding/bert/bert.onnx",
    "image_classification/resnet50/1/model.onnx",
)

PLATFORM = ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")

# A plan takes the shapes that it was built for: smallest, usual and largest, each as texts and tokens. The tokenizer
# makes 256 tokens of a text at most. With real token ids and no padding the comparison with ONNX Runtime means most.
SHAPES = ((1, 1), (8, 64), (16, 256))
BERT = TensorRTPlan(
    "bert",
    onnx="bert.onnx",
    precision="fp16",
    profiles=[{"token_ids": SHAPES, "attn_mask": SHAPES}],
    parity=Parity(ranges={"token_ids": (0, 30521), "attn_mask": (1, 1)}),
)


def text_repository(directory: Path = ASSETS / "sentence_embedding", bert: TensorRTPlan = BERT) -> ModelRepository:
    """The text ensemble, whose network becomes a TensorRT plan during the deployment."""
    return ModelRepository.from_directory(directory, recipes=[bert])


class Artifacts(cdk.Stack):
    """The store in a stack of its own, which outlives those that use it, with a key and a log of who reads and writes.

    Neither is needed to try it: `TritonArtifactStore(stack, "Store")` is a store too.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        access_logs = s3.Bucket(
            self,
            "AccessLogs",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            versioned=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=cdk.Duration.days(400))],
        )
        cdk.Validations.of(access_logs).acknowledge(
            cdk.Acknowledgment(
                id="NIST.800.53.R5-S3DefaultEncryptionKMS",
                reason="S3 delivers access logs only to buckets that are encrypted with S3's own keys.",
            ),
            cdk.Acknowledgment(
                id="NIST.800.53.R5-S3BucketReplicationEnabled",
                reason="S3 replicates into a bucket of another stack only; an organisation has one for logs.",
            ),
        )
        resource = access_logs.node.default_child
        if isinstance(resource, cdk.CfnResource):
            why = "Records of accesses to the records would never end."
            resource.add_metadata("checkov", {"skip": [{"id": "CKV_AWS_18", "comment": why}]})
        # The stacks name no region, so that nobody knows here whether CodeBuild has GPUs there. With no builder named,
        # a SageMaker Processing job would build: it has GPUs in more regions, and most accounts have no quota for it.
        self.store = TritonArtifactStore(
            self,
            "Store",
            builders=[CodeBuildGpuBuilder()],
            encryption_key=kms.Key(self, "Key", description="The Triton artifact store", enable_key_rotation=True),
            access_logs_bucket=access_logs,
        )


class TwoEnsembles(cdk.Stack):
    """Both ensembles on one multi-model endpoint, scaled and watched: text in, embedding out; JPEG in, classes out."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        store: TritonArtifactStore,
        text: ModelRepository,
    ) -> None:
        super().__init__(scope, id)
        multi_model = TritonMultiModel(
            self,
            "Fleet",
            store=store,
            platform=PLATFORM,
            ensembles={
                "text": text,
                "image": ModelRepository.from_directory(ASSETS / "image_classification"),
            },
            # Otherwise DALI keeps its memory when SageMaker unloads the image ensemble to make room for others.
            environment=ContainerEnvironment(additional_args=("--backend-config=dali,release_after_unload=true",)),
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=multi_model)
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_invocations("Requests", max_requests_per_second=40)
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
        key = kms.Key(self, "AlarmsKey", description="Alarms of the two ensembles", enable_key_rotation=True)
        endpoint.monitor(topic=sns.Topic(self, "Alarms", master_key=key, enforce_ssl=True))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "TextModel", value=multi_model.target_model("text"))
        cdk.CfnOutput(self, "ImageModel", value=multi_model.target_model("image"))


class ImageClassification(cdk.Stack):
    """The image ensemble on an endpoint of its own."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
        super().__init__(scope, id)
        model = TritonModel(
            self,
            "Model",
            store=store,
            platform=PLATFORM,
            repository=ModelRepository.from_directory(ASSETS / "image_classification"),
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=model)
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)


def add_stacks(app: cdk.App, *, text: ModelRepository | None = None) -> None:
    """The store and the two stacks that use it; `text` in place of the text ensemble."""
    store = Artifacts(app, "TritonArtifacts").store
    TwoEnsembles(app, "TwoEnsembles", store=store, text=text_repository() if text is None else text)
    ImageClassification(app, "ImageClassification", store=store)


def main() -> None:
    """Synthesise the app; the CDK CLI says where to."""
    missing = [name for name in PREPARED if not (ASSETS / name).exists()]
    if missing:
        sys.exit(
            f"app.py: the weights of the reference ensembles are not prepared ({ASSETS / missing[0]} is missing): run "
            "`python model_assets/prepare.py`"
        )
    app = cdk.App()
    add_stacks(app)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), NIST80053R5Checks(app))
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except CdkTritonError as error:
        sys.exit(f"app.py: {error}")
