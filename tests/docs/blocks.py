"""The fenced blocks of the pages, and how each is run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OUTSIDE = ("CONTRIBUTING.md", "README.md", "examples/platform_team/README.md")
"""The pages with blocks that are not below docs/."""
GENERATED = "docs/rules"
"""The pages below it are written from the rules, whose own tests run their examples."""

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$(?:\n+\1\*Not run here: ([^*]+)\*$)?", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: its page, relative to the checkout.
        line: the number of its first line, the fence.
        language: the word behind the fence; empty for commands of a shell.
        text: the lines between the fences.
        reason: the sentence below the block that explains why no test runs it; None if a test does.
    """

    page: str
    line: int
    language: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, first one first."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    return [_block(name, text, match) for match in FENCE.finditer(text)]


def _block(page: str, text: str, match: re.Match[str]) -> Block:
    indent, language, shown, reason = match.groups()
    shown = re.sub(rf"^{indent}", "", shown, flags=re.MULTILINE)
    line = text.count("\n", 0, match.start()) + 1
    return Block(page, line, language, shown, reason and " ".join(reason.split()))


@cache
def every_block() -> list[Block]:
    """Return the blocks of the pages of the checkout, and of every page below docs/, that a person wrote."""
    pages = [*(ROOT / page for page in OUTSIDE), *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        block
        for page in pages
        if not page.relative_to(ROOT).as_posix().startswith(GENERATED)
        for block in blocks_of(page)
    ]


def kind(block: Block) -> str:
    """Return which test runs a block: the name of a file below tests/, "text" or "not run"."""
    if block.reason is not None:
        return "not run"
    for page, beginning, test in ELSEWHERE:
        if block.page == page and block.text.startswith(beginning):
            return test
    if block.language in TEXT:
        return "text"
    if block.page.startswith("docs/contributing/") and KINDS[block.language] == SHELL:
        return CONTRIBUTORS
    return KINDS[block.language]


def of_kind(name: str, blocks: Iterable[Block] | None = None) -> list[Block]:
    """Return the blocks that one test runs."""
    return [block for block in (every_block() if blocks is None else blocks) if kind(block) == name]


def is_shown(printed: str, shown: str) -> bool:
    """Whether a text is the one that a page shows, in which `…` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), printed, re.DOTALL) is not None


def shape(value: Any) -> Any:
    """Return the keys and types of a JSON document; of a list, those of its first element."""
    match value:
        case dict():
            return {name: shape(each) for name, each in value.items()}
        case list():
            return [shape(each) for each in value[:1]]
    return type(value).__name__


TEXT = ("text",)
"""The language of trees, formulas and synopses, and of output without its command."""

PYTHON, SHELL, CONSOLE, DATA, WORKFLOW = (
    "docs/test_python_blocks.py",
    "docs/test_shell_blocks.py",
    "docs/test_shell_blocks.py",
    "docs/test_data_blocks.py",
    "docs/test_workflow_blocks.py",
)
CONTRIBUTORS = "docs/test_contributor_blocks.py"
"""Commands that start tests or generators, which run in a copy of the checkout."""

KINDS = {
    "": SHELL,
    "sh": SHELL,
    "console": CONSOLE,
    "json": DATA,
    "protobuf": DATA,
    "py": PYTHON,
    "python": PYTHON,
    "toml": DATA,
    "yaml": WORKFLOW,
}
"""Language of a block → the test that runs it."""

ELSEWHERE = (
    ("README.md", "$ cdk-triton validate", "tools/test_generate.py"),
    ("README.md", "cd ../cdk-triton", "end_to_end/example_app/test_two_ensembles.py"),
    ("README.md", "from aws_cdk import App", "hosting/test_example_app.py"),
    ("docs/builds.md", "from aws_cdk", "hosting/store/builds/test_builds_page.py"),
    ("docs/builds.md", "from cdk_triton", "hosting/store/builds/test_builds_page.py"),
    ("docs/builds.md", "produced =", "hosting/store/builds/test_builds_page.py"),
    ("docs/client.md", "backend", "client/test_scheduling_on_triton.py"),
    ("docs/client.md", "import triton_python_backend_utils", "client/test_scheduling_on_triton.py"),
    ("docs/client.md", "endpoint.grant_invoke", "hosting/endpoints/test_updates_page.py"),
    ("docs/client.md", "name = ssm", "hosting/endpoints/test_updates_page.py"),
    ("docs/contributing/add-a-local-resource.md", "the resource type", "docs/test_text_blocks.py"),
    ("docs/contributing/add-a-recipe.md", '"""', "gpu_build/steps/test_recipe_page.py"),
    ("docs/contributing/add-a-recipe.md", "STEPS", "gpu_build/steps/test_recipe_page.py"),
    ("docs/contributing/add-a-recipe.md", "def test", "gpu_build/steps/test_recipe_page.py"),
    ("docs/contributing/add-a-rule.md", "from collections", "docs/test_rule_page.py"),
    ("docs/contributing/add-a-rule.md", "FOUND", "docs/test_rule_page.py"),
    ("docs/endpoints.md", "from cdk_triton import DataCapture", "hosting/endpoints/test_updates_page.py"),
    ("docs/endpoints.md", "import base64", "integration/test_captured_data.py"),
    ("docs/framework_model.md", "cdk-triton init", "end_to_end/example_app/test_framework_page.py"),
    ("docs/framework_model.md", "backend", "end_to_end/example_app/test_framework_page.py"),
    ("docs/framework_model.md", "$ cdk-triton validate", "end_to_end/example_app/test_framework_page.py"),
    ("docs/framework_model.md", "variables", "end_to_end/example_app/test_framework_page.py"),
    ("docs/framework_model.md", "import numpy", "end_to_end/example_app/test_framework_page.py"),
    ("docs/install.md", "cdk-triton>=", "docs/test_text_blocks.py"),
    ("docs/install.md", "cdk synth", "architecture/test_docs.py"),
    ("docs/leaving.md", "from aws_cdk", "end_to_end/example_app/test_leaving.py"),
    ("docs/leaving.md", "cdk deploy --all", "end_to_end/example_app/test_leaving.py"),
    ("docs/leaving.md", "import json", "end_to_end/example_app/test_leaving.py"),
    ("docs/leaving.md", "cdk destroy", "end_to_end/example_app/test_leaving.py"),
    ("docs/leaving.md", "cdk import", "end_to_end/example_app/test_leaving.py"),
    ("docs/load_tests.md", "max_requests", "cli/bench/test_report.py"),
    ("docs/many_ensembles.md", "publication =", "docs/test_text_blocks.py"),
    ("docs/many_ensembles.md", "batch", "docs/test_text_blocks.py"),
    ("docs/many_ensembles.md", "upload", "docs/test_text_blocks.py"),
    ("docs/many_ensembles.md", "loaded", "docs/test_text_blocks.py"),
    ("docs/monitoring.md", '{ "app"', "hosting/endpoints/monitoring/test_runbook_context.py"),
    ("docs/pipelines.md", "Source →", "examples/test_pipeline_app.py"),
    ("docs/platform_teams.md", "from aws_cdk import App", "examples/test_platform_team.py"),
    ("docs/platform_teams.md", "class AcmeEndpoint", "examples/test_platform_team.py"),
    ("docs/production.md", "mkdir", "end_to_end/example_app/test_whole_app.py"),
    ("docs/production.md", "from aws_cdk", "end_to_end/example_app/test_whole_app.py"),
    ("docs/production.md", "variables", "end_to_end/example_app/test_whole_app.py"),
    ("docs/production.md", "from cdk_triton", "end_to_end/example_app/test_whole_app.py"),
    ("docs/production.md", "cdk destroy", "end_to_end/example_app/test_whole_app.py"),
    ("docs/publishing.md", "import aws_cdk", "end_to_end/example_app/test_published_ensembles.py"),
    ("docs/publishing.md", "mkdir", "end_to_end/example_app/test_published_ensembles.py"),
    ("docs/publishing.md", "from cdk_triton.client", "end_to_end/example_app/test_published_ensembles.py"),
    ("docs/publishing.md", "cdk-triton fleet publish --all", "end_to_end/test_publisher_platforms.py"),
    ("docs/publishing.md", "cdk-triton fleet publish tenants", "end_to_end/test_publisher.py"),
    ("docs/publishing.md", "{", "handlers/test_catalogue_page.py"),
    ("docs/recipes.md", "import json", "hosting/store/builds/test_builds_page.py"),
    ("docs/recipes.md", "from cdk_triton", "hosting/store/builds/test_builds_page.py"),
    ("docs/reference_systems/image_classification.md", "import", "end_to_end/example_app/test_image_classification.py"),
    ("docs/reference_systems/index.md", "export", "end_to_end/example_app/test_tensorrt_tenants.py"),
    ("docs/reference_systems/onnx_models.md", "import", "end_to_end/example_app/test_onnx_models.py"),
    ("docs/reference_systems/pytorch_network.md", "import", "end_to_end/example_app/test_pytorch_network.py"),
    ("docs/reference_systems/tree_models.md", "import", "end_to_end/example_app/test_tree_models.py"),
    ("docs/reference_systems/tensorrt_tenants.md", "import", "end_to_end/example_app/test_tensorrt_tenants.py"),
    ("docs/reference_systems/text_generation.md", "PIP_NO_INDEX", "end_to_end/example_app/test_text_generation.py"),
    ("docs/reference_systems/text_generation.md", "import", "end_to_end/example_app/test_text_generation.py"),
    (
        "docs/reference_systems/text_generation.md",
        "from cdk_triton.client",
        "end_to_end/example_app/test_text_generation.py",
    ),
    ("docs/reference_systems/two_ensembles.md", "import", "end_to_end/example_app/test_two_ensembles.py"),
    ("docs/rehearsal.md", "cdk-triton init", "end_to_end/example_app/test_rehearsal_page.py"),
    ("docs/rehearsal.md", "$ cat", "end_to_end/example_app/test_rehearsal_page.py"),
    ("docs/rehearsal.md", "cat >", "end_to_end/example_app/test_rehearsal_page.py"),
    ("docs/rehearsal.md", "$ cdk-triton", "end_to_end/example_app/test_rehearsal_page.py"),
    ("docs/rehearsal.md", "variables", "end_to_end/example_app/test_rehearsal_page.py"),
    ("docs/rehearsal.md", "$ python", "end_to_end/example_app/test_rehearsal_page.py"),
    ("docs/rehearsal.md", "sed", "end_to_end/example_app/test_rehearsal_page.py"),
    ("docs/rehearsal.md", "$ cdk deploy", "end_to_end/example_app/test_rehearsal_page.py"),
    ("docs/rollback.md", "from aws_cdk", "hosting/endpoints/test_updates_page.py"),
    ("docs/rollback.md", "topic =", "hosting/endpoints/test_updates_page.py"),
    ("docs/security.md", "[", "hosting/access/keys/test_keys_page.py"),
    ("docs/security.md", "{", "hosting/access/keys/test_keys_page.py"),
    ("docs/store.md", "cdk deploy TritonArtifacts", "end_to_end/test_retained_bucket.py"),
    ("docs/store.md", "cdk import", "end_to_end/test_retained_bucket.py"),
    ("docs/store.md", "{", "cli/artifacts/test_list.py"),
    ("docs/store.md", "artifacts/", "hosting/store/test_store_layout.py"),
    ("docs/updates.md", "from aws_cdk", "hosting/endpoints/test_updates_page.py"),
    ("docs/validate.md", "$ cdk-triton validate", "docs/test_text_blocks.py"),
    ("examples/platform_team/README.md", "from aws_cdk", "examples/test_platform_team.py"),
)
"""Page, the beginning of a block, and the test below tests/ that runs it. The test takes its blocks from `of_kind`, and
fails if it gets one more or one less."""
