"""Variables of a container that look like secrets are refused, and what only sounds like one is not."""

from __future__ import annotations

import pytest

from cdk_triton import ContainerEnvironment
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.environment import container_variables

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"

REFUSED = [
    ("DB_PASSWORD", "hunter2", "is a secret by its name"),
    ("PASSWORD", "1234", "is a secret by its name"),
    ("CLIENT_SECRET", "tr0ub4dor", "is a secret by its name"),
    ("apiKey", "tr0ub4dor", "is a secret by its name"),
    ("AWS_SECRET_ACCESS_KEY", "tr0ub4dor", "is a secret by its name"),
    ("AWS_SESSION_TOKEN", "tr0ub4dor", "is a secret by its name"),
    ("HUB_TOKEN", "0123456789abcdef", "is a secret by its name"),
    ("HINT", f"hf_{LETTERS[:34]}", "has the form of a token of Hugging Face"),
    ("HINT", f"ghp_{LETTERS}", "has the form of a token of GitHub"),
    ("HINT", "AKIA" + "A1" * 8, "has the form of an access key of AWS"),
    ("HINT", "-----BEGIN RSA PRIVATE KEY-----", "has the form of a private key"),
    ("REDIS", "redis://app:hunter2@cache:6379/0", "has the form of an address with a password"),
    ("HINT", "{{resolve:secretsmanager:models:SecretString:hub}}", "refers to a store of secrets"),
    ("HINT", "{{resolve:ssm-secure:/models/hub}}", "refers to a store of secrets"),
]


@pytest.mark.parametrize(("name", "value", "why"), REFUSED, ids=[f"{name}-{why[:24]}" for name, _, why in REFUSED])
def test_a_secret_is_refused_and_never_repeated(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ContainerEnvironment(variables={name: value})

    message = str(caught.value)
    assert message.startswith(f"the environment variable {name!r} {why}")
    assert message.endswith(
        "keep it in Secrets Manager, pass its ARN, and let the model fetch it with the execution role"
    )
    assert value not in message


def test_a_number_is_not_repeated_either() -> None:
    with pytest.raises(ConfigurationError, match="'DB_PASSWORD' is a secret by its name") as caught:
        ContainerEnvironment(variables={"DB_PASSWORD": 48151623})  # type: ignore[dict-item] # what a user may write

    assert "48151623" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EOS_TOKEN", "<|endoftext|>"),
        ("EOS_TOKEN", "</s>"),
        ("PAD_TOKEN", "[PAD]"),
        ("MAX_TOKENS", "4096"),
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
