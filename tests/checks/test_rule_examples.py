"""Every rule is documented, and its documentation is true: the example is found, its fixed twin is clean."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from cdk_triton.checks import Rule, rules
from cdk_triton.tensorrt_models.reader.parser import is_installed
from cdk_triton.triton.locations import locate

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import ExampleFindings

FIELD = re.compile(r'[a-z]\w*(\[(\d+|"[^"]*")\])?(\.[a-z]\w*(\[(\d+|"[^"]*")\])?)*')

by_code = pytest.mark.parametrize("each", rules(), ids=lambda each: each.code)


@pytest.fixture
def _extra(each: Rule) -> None:
    """Skip what only TensorRT's own parser can say, where that is not installed, and what depends on the Python."""
    if each.code == "CT160" and sys.version_info >= (3, 12):
        pytest.skip("this Python knows all syntax of the containers")
    if each.asks_parser and not is_installed():
        pytest.skip("the extra preflight is not installed: make preflight")


@by_code
@pytest.mark.usefixtures("_extra")
def test_the_example_is_found_by_this_rule_alone(
    messages: Messages, each: Rule, findings_of_example: ExampleFindings
) -> None:
    example = each.documentation.repository()
    findings = findings_of_example(example)
    assert {finding.code for finding in findings} == {each.code}, findings
    for finding in findings:
        if finding.field and finding.path.endswith("config.pbtxt"):
            assert FIELD.fullmatch(finding.field), finding.field
            text = example.files.get(finding.path, "")
            first = re.split(r"\W", finding.field)[0]
            written = re.search(rf"^{first}\b", text, re.MULTILINE)
            assert (locate(text, finding.field) is None) is (written is None), "the place of the field is found"
    if not each.asks_parser:  # those quote the installed TensorRT
        messages.of(findings)


@by_code
@pytest.mark.usefixtures("_extra")
def test_the_mended_example_is_clean(each: Rule, findings_of_example: ExampleFindings) -> None:
    assert findings_of_example(each.documentation.fixed_repository()) == ()
