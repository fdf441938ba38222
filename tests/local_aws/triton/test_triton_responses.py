"""The sentences of sagemaker-runtime that are the local AWS's own."""

from __future__ import annotations

from cdk_triton_local.triton.responses import ErrorResponses


def test_the_command_for_the_log_finds_the_state_directory() -> None:
    errors = ErrorResponses("fleet", account="1", region="us-east-1", log_options=" --directory '/srv/my st'")
    body = errors.model_data_unusable("it is empty").response.body.decode()
    assert "`cdk-triton local logs --endpoint fleet --directory '/srv/my st'`" in body
