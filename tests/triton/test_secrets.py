"""Variables of a container that look like secrets are rejected, and what only sounds like one is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton import ContainerEnvironment
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.environment import container_variables

if TYPE_CHECKING:
    from golden_messages import Messages


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"

REJECTED = {
    "password with a prefix": ("DB_PASSWORD", "hunter2"),
    "password": ("PASSWORD", "1234"),
    "client secret": ("CLIENT_SECRET", "tr0ub4dor"),
    "API key": ("apiKey", "tr0ub4dor"),
    "secret access key": ("AWS_SECRET_ACCESS_KEY", "tr0ub4dor"),
    "session token": ("AWS_SESSION_TOKEN", "tr0ub4dor"),
    "token": ("HUB_TOKEN", "0123456789abcdef"),
    "short API key": ("API_KEY", "abc"),
    "short key of a service": ("OPENAI_API_KEY", "k3y"),
    "short token": ("TOKEN", "s3cr3t"),
    "short token of Hugging Face": ("HF_TOKEN", "letmein"),
    "short token of a hub": ("HUGGING_FACE_HUB_TOKEN", "letmein"),
    "password of PostgreSQL": ("PGPASSWORD", "letmein"),
    "password of MySQL": ("MYSQL_PWD", "letmein"),
    "token of Hugging Face": ("HINT", f"hf_{LETTERS[:34]}"),
    "token of GitHub": ("HINT", f"ghp_{LETTERS}"),
    "access key of AWS": ("HINT", "AKIA" + "A1" * 8),
    "private key": ("HINT", "-----BEGIN RSA PRIVATE KEY-----"),
    "address with a password": ("REDIS", "redis://app:hunter2@cache:6379/0"),
    "reference to Secrets Manager": ("HINT", "{{resolve:secretsmanager:models:SecretString:hub}}"),
    "reference to Parameter Store": ("HINT", "{{resolve:ssm-secure:/models/hub}}"),
}


@pytest.mark.parametrize(("name", "value"), REJECTED.values(), ids=REJECTED)
def test_a_secret_is_rejected_and_never_repeated(messages: Messages, name: str, value: str) -> None:
    with messages.raises(ConfigurationError) as caught:
        ContainerEnvironment(variables={name: value})

    assert value not in str(caught.value)


def test_a_number_is_not_repeated_either(messages: Messages) -> None:
    with messages.raises(ConfigurationError) as caught:
        ContainerEnvironment(variables={"DB_PASSWORD": 48151623})  # type: ignore[dict-item] # what a user may write

    assert "48151623" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EOS_TOKEN", "<|endoftext|>"),
        ("EOS_TOKEN", "</s>"),
        ("PAD_TOKEN", "[PAD]"),
        ("MAX_TOKENS", "4096"),
        ("MAX_TOKENS", "4k"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("TOKEN", "<s>"),
        ("TOKEN", "50256"),
        ("TOKEN", "eos"),
        ("IMAGE_TOKEN", "img0"),
        ("STOP_TOKEN", "50256"),
        ("HF_TOKEN", "/opt/ml/model/token"),
        ("REQUIRE_PASSWORD", "no"),
        ("ASK_PASSWORD", "off"),
        ("API_KEYS_TABLE", "keys"),
        ("TOKENIZER", "bert-base-uncased"),
        ("DB_PASSWORD", "arn:aws:secretsmanager:eu-west-1:111122223333:secret:db-AbCdEf"),
        ("DB_PASSWORD_ARN", "arn:aws:secretsmanager:eu-west-1:111122223333:secret:db-AbCdEf"),
        ("DB_SECRET", "/models/db/password"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/opt/ml/model/credentials.json"),
        ("USE_API_KEY", "false"),
        ("API_KEY_HEADER", "x-api-key"),
        ("PARTITION_KEY", "customer"),
        ("CACHE", "redis://cache:6379/0"),
        ("SECRET", "${Token[TOKEN.42]}"),
    ],
)
def test_what_only_sounds_like_one_is_accepted(name: str, value: str) -> None:
    assert container_variables(ContainerEnvironment(variables={name: value}), multi_model=True)[name] == value
