"""The environment variables that lead AWS clients to the local AWS, and those that would lead them away from it.

Sources: "Environment variables" and "Service-specific endpoints" in the AWS SDKs and Tools Reference Guide; botocore's
`session.BOTOCORE_DEFAULT_SESSION_VARIABLES` and `utils.get_environ_proxies`.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["conflicting_variables", "credentials", "endpoint_variables", "no_proxy"]

_CONFLICTING = {"AWS_DEFAULT_PROFILE", "AWS_PROFILE", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"}
_SERVICE_ENDPOINT = "AWS_ENDPOINT_URL_"
_LOCAL_HOSTS = ("127.0.0.1", "localhost")


def credentials(account: str, secret: str) -> dict[str, str]:
    """The credentials that clients sign with; no real AWS accepts them.

    Each account has a key of its own, because the CDK CLI remembers for good which account a key belongs to
    (`AccountAccessKeyCache` in aws/aws-cdk-cli).
    """
    return {"AWS_ACCESS_KEY_ID": f"local{account}", "AWS_SECRET_ACCESS_KEY": secret}


def endpoint_variables(url: str, region: str, account: str, secret: str) -> dict[str, str]:
    """The variables that make boto3, the AWS CLI and the CDK CLI talk to the local AWS at `url`.

    They replace the user's own AWS files, so that no profile, session or endpoint setting leads to a real account.
    """
    return {
        **credentials(account, secret),
        "AWS_ENDPOINT_URL": url,
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
        "AWS_USE_FIPS_ENDPOINT": "false",  # SDKs refuse it together with an endpoint URL, and dual stack too
        "AWS_USE_DUALSTACK_ENDPOINT": "false",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DEFAULT_ACCOUNT": account,
        "CDK_DEFAULT_REGION": region,
    }


def conflicting_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The variables in `environment` that must be unset, because none of their values means "none"."""
    return tuple(sorted(name for name in environment if name in _CONFLICTING or name.startswith(_SERVICE_ENDPOINT)))


def no_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """`NO_PROXY` and `no_proxy` of `environment`, with this machine added, which a proxy cannot reach."""
    present = ",".join(environment.get(name, "") for name in ("NO_PROXY", "no_proxy")).split(",")
    hosts = ",".join(dict.fromkeys(host for each in (*present, *_LOCAL_HOSTS) if (host := each.strip())))
    return {"NO_PROXY": hosts, "no_proxy": hosts}
