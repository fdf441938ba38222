"""A pipeline that updates itself and deploys the text ensemble to two accounts, in two regions.

Write your accounts, buckets and connection below, and deploy the pipeline once, from the root of the checkout and with
the credentials of its account:

    npx cdk deploy Pipeline --app "python examples/pipeline_app.py"

From then on each push deploys: the pipeline itself first, then Test and, when somebody has approved it, Live.
`docs/pipelines.md` explains what is done here, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import pipelines
from constructs import Construct

from cdk_triton import (
    ModelRepository,
    S3File,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
)


@dataclass(frozen=True)
class Target:
    """An account and region to deploy to, and its bucket with the network, which is too large for a pipeline."""

    account: str
    region: str
    weights: str


TOOLS = cdk.Environment(account="111111111111", region="eu-west-1")
TEST = Target("222222222222", "eu-west-1", weights="acme-weights-eu-west-1")
LIVE = Target("333333333333", "us-east-1", weights="acme-weights-us-east-1")

REPOSITORY = "acme/text-embedding"
CONNECTION = "arn:aws:codeconnections:eu-west-1:111111111111:connection/12345678-90ab-cdef-1234-567890abcdef"

WEIGHTS_KEY = "sentence_embedding/bert.onnx"
WEIGHTS_SHA256 = "9cceeda029560069cb7c9d2a3f68b331b7475fcffb812c55bb5e47c118a40a8e"

PLATFORM = ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")
SHAPES = ((1, 1), (8, 64), (16, 256))

ASSETS = Path(__file__).resolve().parents[1] / "model_assets"

TESTED_BUCKET, TESTED_KEY = "tested-bucket", "tested-key"
"""Context: bucket and ARN of the key of Test's store, as its stack prints them. With it, Live promotes from there."""


def text_repository(bucket: str) -> ModelRepository:
    """The text ensemble. The place of its network is not part of a key, so all stages have the same keys."""
    network = S3File(bucket=bucket, key=WEIGHTS_KEY, sha256=WEIGHTS_SHA256)
    profile = {"token_ids": SHAPES, "attn_mask": SHAPES}
    plan = TensorRTPlan("bert", onnx=network, precision="fp16", profiles=[profile])
    return ModelRepository.from_directory(ASSETS / "sentence_embedding", recipes=[plan])


class Artifacts(cdk.Stack):
    """The store of one account and region, which other accounts may promote from."""

    def __init__(self, scope: Construct, id: str, *, promotes: bool, read_by: str | None) -> None:
        super().__init__(scope, id)
        key = kms.Key(self, "Key", description="The Triton artifact store", enable_key_rotation=True)
        logs = s3.Bucket.from_bucket_name(self, "AccessLogs", f"acme-access-logs-{self.account}-{self.region}")
        self.store = TritonArtifactStore(
            self,
            "Store",
            encryption_key=key,
            access_logs_bucket=logs,
            promotes_from=TritonArtifactStore.from_bucket(self, "Tested", self._tested_bucket()) if promotes else None,
        )
        cdk.Annotations.of(self.store).acknowledge_warning(
            "@aws-cdk/aws-s3:accessLogsPolicyNotAdded",
            "the organisation's buckets for logs take them from all accounts",
        )
        if read_by is not None:
            self.store.grant_read(iam.AccountPrincipal(read_by))
        cdk.CfnOutput(self, "Bucket", value=self.store.bucket.bucket_name)
        cdk.CfnOutput(self, "KeyArn", value=key.key_arn)

    def _tested_bucket(self) -> s3.IBucket:
        return s3.Bucket.from_bucket_attributes(
            self,
            "TestedBucket",
            bucket_name=self.node.get_context(TESTED_BUCKET),
            encryption_key=kms.Key.from_key_arn(self, "TestedKey", self.node.get_context(TESTED_KEY)),
        )


class TextEmbedding(cdk.Stack):
    """The text ensemble on an endpoint."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        store: TritonArtifactStore,
        text: ModelRepository,
    ) -> None:
        super().__init__(scope, id)
        model = TritonModel(self, "Model", store=store, platform=PLATFORM, repository=text)
        endpoint = TritonEndpoint(self, "Endpoint", model=model)
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)


class Serving(cdk.Stage):
    """The stacks of one account and region."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        target: Target,
        *,
        promotes: bool = False,
        read_by: str | None = None,
    ) -> None:
        super().__init__(scope, id, env=cdk.Environment(account=target.account, region=target.region))
        artifacts = Artifacts(self, "Artifacts", promotes=promotes, read_by=read_by)
        TextEmbedding(self, "Text", store=artifacts.store, text=text_repository(target.weights))


class Pipeline(cdk.Stack):
    """Source, synthesis, the pipeline's own update, assets, Test, an approval, Live."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, env=TOOLS)
        synth = pipelines.ShellStep(
            "Synth",
            input=pipelines.CodePipelineSource.connection(REPOSITORY, "main", connection_arn=CONNECTION),
            install_commands=["python -m pip install -r requirements.txt", "npm ci"],
            commands=[
                "python model_assets/prepare.py",
                "rm model_assets/sentence_embedding/bert/bert.onnx",  # the builds read it from S3
                # With a pattern the CLI also shows the warnings below a stage.
                "npx cdk synth '**' --quiet --app 'python examples/pipeline_app.py'",
            ],
        )
        runtimes = {"phases": {"install": {"runtime-versions": {"python": "3.12", "nodejs": "22"}}}}
        pipeline = pipelines.CodePipeline(
            self,
            "Pipeline",
            synth=synth,
            pipeline_type=codepipeline.PipelineType.V2,
            cross_account_keys=True,  # Test and Live decrypt what the pipeline hands them
            cli_version="2.1148.1",  # as in package.json: `latest` is one that cannot read current assemblies
            publish_assets_in_parallel=False,  # otherwise each new archive would change the pipeline itself
            code_build_defaults=pipelines.CodeBuildOptions(
                partial_build_spec=codebuild.BuildSpec.from_object(runtimes)
            ),
        )
        promotes = self.node.try_get_context(TESTED_BUCKET) is not None
        test = Serving(self, "Test", TEST, read_by=LIVE.account if promotes else None)
        live = Serving(self, "Live", LIVE, promotes=promotes)
        pipeline.add_stage(test)
        pipeline.add_stage(live, pre=[pipelines.ManualApprovalStep("Release")])


def main() -> None:
    """Synthesise the app."""
    app = cdk.App()
    Pipeline(app, "Pipeline")
    app.synth()


if __name__ == "__main__":
    main()
