"""Finds values that look like secrets among a container's variables.

Everybody with permission to describe the model can read these variables. SageMaker warns: "Don't include any sensitive
data in your environment variables" (ContainerDefinition in its API reference). A program cannot recognise a secret for
certain. So a value counts as one in only three cases: CloudFormation would read it from a store of secrets; it has the
form of a well-known credential; or its name is that of a secret, and the value is neither a pointer (ARN, path, URL)
nor a switch such as `true` or `1`. `EOS_TOKEN` and `MAX_TOKENS` are words of language models. So a name that ends in
`TOKEN` counts only if the value is long and made of letters and digits, as only credentials are. The name `TOKEN` by
itself is not a word of a language model, so there a short value of letters and digits is enough. A name such as
`HF_TOKEN` contains the service of the token.
"""

from __future__ import annotations

import re
from typing import Final

from cdk_triton._tokens import has_token

__all__ = ["STORES_OF_SECRETS", "looks_secret", "secret_rejection"]

STORES_OF_SECRETS: Final = re.compile(r"\{\{resolve:(secretsmanager|ssm-secure):")
"""CloudFormation's dynamic references to secrets, which stand in the model as plain text ("Dynamic references")."""

# As gitleaks has them (config/gitleaks.toml: aws-access-token, github-*, gitlab-pat, huggingface-access-token, jwt,
# openai-api-key, private-key, slack-*), without what depends on a name.
_FORMS: Final = {
    "an access key of AWS": r"\b(AKIA|ASIA)[A-Z0-9]{16}\b",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY",
    "a token of Hugging Face": r"\bhf_[A-Za-z]{34}\b",
    "a token of GitHub": r"\b(gh[opsru]_[A-Za-z0-9]{36}|github_pat_\w{22,})",
    "a token of GitLab": r"\bglpat-[\w-]{20}",
    "a token of Slack": r"\bxox[abeoprs]-[\w-]{10,}",
    "a key of OpenAI": r"\bsk-[\w-]{32,}",
    "a JSON web token": r"\bey[A-Za-z0-9_-]{15,}\.ey[A-Za-z0-9_-]{15,}\.",
    "an address with a password": r"://[^/\s:@]+:[^/\s@]+@",
}

_SECRET_NAME: Final = re.compile(
    r"(^|_)((pg)?password|passwd|passphrase|secret|(secret|api|private|access|secret_access)_?key|access_?key_?id"
    r"|(access|api|auth|bearer|refresh|session)_?token|(hf|hub|hugging_?face|github|gh|gitlab|vault|oauth|ngc)_token"
    r"|credentials?)$|_pwd$",
    re.IGNORECASE,
)
_TOKEN_NAME: Final = re.compile(r"(^|_)token$", re.IGNORECASE)
_SHORT_KEY: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~+/=-]{4,}")
_KEY: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~+/=-]{16,}")
_POINTER_OR_SWITCH: Final = re.compile(
    r"|\d|true|false|yes|no|on|off|none|arn:.*|/.*|[a-z][a-z0-9+.-]*://.*", re.IGNORECASE
)


def looks_secret(name: str, value: str) -> str | None:
    """Why a variable's value seems to be a secret, as the end of a sentence about it; None if it does not.

    Values with a CDK token are checked elsewhere, in the template.
    """
    if STORES_OF_SECRETS.search(value):
        return "refers to a store of secrets, from which CloudFormation would write the secret itself into the model"
    for what, form in _FORMS.items():
        if re.search(form, value):
            return f"has the form of {what}"
    if has_token(value) or _POINTER_OR_SWITCH.fullmatch(value):
        return None
    key = _SHORT_KEY if name.lower() == "token" else _KEY
    if _SECRET_NAME.search(name) or (_TOKEN_NAME.search(name) and key.fullmatch(value)):
        return "has the name of a secret"
    return None


def secret_rejection(name: str, why: str) -> str:
    """The message that rejects a variable, without its value."""
    return (
        f"the environment variable {name!r} {why}, but everybody who may describe the model can read the value: keep "
        "the secret in Secrets Manager, pass the ARN, and let the model fetch the secret with the execution role"
    )
