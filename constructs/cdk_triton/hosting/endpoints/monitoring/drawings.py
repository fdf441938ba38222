"""The ensembles of a variant on its dashboard, as blocks of characters of one width."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton.artifacts.repository_cache import cached_answer
from cdk_triton.drawing import as_text, diagrams
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.models.model import TritonModel
from cdk_triton.hosting.models.multi_model import TritonMultiModel
from cdk_triton.triton import ModelRepository

__all__ = ["drawings"]

_MOST = 4  # more would hide the graphs; `cdk-triton graph` draws them all
_LINES_OF_A_UNIT = 2.4  # lines of text in one unit of the grid, which is about 48 pixels high


def drawings(model: ITritonModel, columns: int) -> list[list[cloudwatch.IWidget]]:
    """A row for each repository of a model, for four at most; none for an imported model.

    A text widget contains Markdown ("Add or Remove a Text Widget from a CloudWatch Dashboard" in the user guide,
    https://github.com/awsdocs/amazon-cloudwatch-user-guide/blob/1f7fcd335f4771d081f127f1590da589a6bc8082/doc_source/add_remove_text_dashboard.md).
    Neither that page nor the CDK's `TextWidget` names the dialect. The page "Using Markdown in AWS", to which it leads,
    could not be read. InfoQ names GitHub Flavored Markdown, in which triple backticks begin and end a block
    (https://www.infoq.com/news/2017/09/cloudwatch-dashboards-api/). docs/not_verified.toml has the check.

    Args:
        model: the model of a variant.
        columns: the width of a row.
    """
    names: dict[int, list[str]] = {}
    repositories = _repositories(model)
    for name, repository in repositories.items():
        names.setdefault(id(repository), []).append(name)
    rows: list[list[cloudwatch.IWidget]] = []
    for of in list(names.values())[:_MOST]:
        more = f" and {len(of) - 1} more" if len(of) > 1 else ""
        blocks = _blocks(repositories[of[0]])
        markdown = f"### {of[0]}{more}\n" + "\n".join(f"```\n{block}\n```" for block in blocks)
        height = 2 + math.ceil((markdown.count("\n") + 1) / _LINES_OF_A_UNIT)
        rows.append([cloudwatch.TextWidget(markdown=markdown, width=columns, height=height)])
    if len(names) > _MOST:
        rest = f"{len(names) - _MOST} more ensembles: `cdk-triton graph DIR` draws each."
        rows.append([cloudwatch.TextWidget(markdown=rest, width=columns, height=1)])
    return rows


def _blocks(repository: ModelRepository) -> list[str]:
    """The drawing of each ensemble; an unchanged repository is not read again."""
    found: list[str] = cached_answer([repository], ["drawings 1"], lambda: [*map(as_text, diagrams(repository))])
    return found


def _repositories(model: ITritonModel) -> Mapping[str, ModelRepository]:
    if isinstance(model, TritonModel):
        return {model.repository.name: model.repository}
    return model.ensembles if isinstance(model, TritonMultiModel) else {}
