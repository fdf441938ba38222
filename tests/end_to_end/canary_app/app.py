"""Synthesises what `test_canary.py` deploys, one cloud assembly per model: the example of docs/canary.md.

Usage: `python app.py REPOSITORIES ASSETS OUTPUT`. ASSETS is the bucket of the assets: there is no bootstrap, which
other tests go through.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

from cdk_triton import ModelRepository, ServingPlatform, TritonModel

PLACE = cdk.Environment(account="123456789012", region="us-east-1")
PAGE = Path(__file__).parents[3] / "docs" / "canary.md"


class Search(cdk.Stack):
    """The stack around the code of the page."""

    def __init__(self, app: cdk.App, repository: Path) -> None:
        super().__init__(app, "Search", env=PLACE)
        topic = sns.Topic(self, "Topic", enforce_ssl=True)
        model = TritonModel(
            self,
            "Model",
            repository=ModelRepository.from_directory(repository),
            platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge"),
        )
        found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        assert found is not None
        names: dict[str, Any] = {"self": self, "model": model, "topic": topic}
        exec(textwrap.dedent(found[1]), names)
        names["endpoint"].grant_invoke(iam.Role(self, "Caller", assumed_by=iam.AccountRootPrincipal()))
        cdk.CfnOutput(self, "TopicArn", value=topic.topic_arn)


def main(repositories: str, assets: str, output: str) -> None:
    for repository in sorted(Path(repositories).iterdir()):
        app = cdk.App(
            outdir=str(Path(output, repository.name)),
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
            builtin_cloud_formation_validation=False,  # other tests have it
        )
        Search(app, repository / "search")
        app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
