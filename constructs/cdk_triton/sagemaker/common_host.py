"""Chooses the host AMI of several platforms: a variant with instance pools has one AMI for all of its instance types.

`InferenceAmiVersion` is a property of the production variant, and an entry of `InstancePools` has none (shapes
ProductionVariant and InstancePool of botocore 1.44.5).
"""

from __future__ import annotations

from collections.abc import Sequence

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker.host_amis import HOST_AMIS, warning_about_host_ami
from cdk_triton.sagemaker.platform import ServingPlatform, derived_host_ami

__all__ = ["common_host_ami"]


def common_host_ami(what: str, platforms: Sequence[ServingPlatform]) -> str | None:
    """The host AMI of a variant that runs on several platforms of one image; None: SageMaker's default host.

    An AMI that you gave one of the platforms must suit the others, too. If you gave none, the result is a derived AMI
    that suits every GPU.

    Args:
        what: the variant, as error messages name it.
        platforms: the platforms of the variant, at least one.

    Raises:
        ConfigurationError: you gave two platforms different AMIs, or one that does not suit another platform; or no
            derived AMI suits all GPUs.
    """
    wanted = list(dict.fromkeys(platform.inference_ami_version for platform in platforms))
    if len(wanted) == 1:
        return wanted[0]
    by_hand = [each for each in platforms if each.inference_ami_version != derived_host_ami(each)]
    given = list(dict.fromkeys(platform.inference_ami_version for platform in by_hand))
    if len(given) > 1:
        other = next(each for each in by_hand if each.inference_ami_version == given[1])
        raise ConfigurationError(
            f"{what} has the host AMI {_text(given[0])} for {by_hand[0].instance_type} and {_text(given[1])} for "
            f"{other.instance_type}: SageMaker takes one host AMI for all instance pools, so give both platforms "
            "the same inference_ami_version"
        )
    candidates = given or wanted
    for name in candidates:
        if all(_conflict(name, platform) is None for platform in platforms):
            return name
    raise _unfit(what, candidates[-1], platforms)


def _conflict(name: str | None, platform: ServingPlatform) -> str | None:
    """None if the platform has that AMI already."""
    if platform.inference_ami_version == name:
        return None
    cuda = None if platform.versions is None else platform.versions.cuda
    return warning_about_host_ami(name, cuda, platform.instance)


def _unfit(what: str, name: str | None, platforms: Sequence[ServingPlatform]) -> ConfigurationError:
    owner = next(each for each in platforms if each.inference_ami_version == name)
    other = next(each for each in platforms if _conflict(name, each) is not None)
    newest, host, reason = HOST_AMIS[-1], _text(name), _conflict(name, other)
    against = f"which does not suit {other.instance_type}, because" if name else f"but on {other.instance_type}"
    return ConfigurationError(
        f"{what} has pools on {owner.instance_type} and {other.instance_type}, but no host AMI suits both with "
        f"{owner.image_identity}: {owner.instance_type} has {host}, {against} {reason}. "
        f"Use a release with CUDA {newest.cuda[0]}, which {newest.name} serves "
        "on every GPU. Or serve each of the two instance types by its own endpoint, or test one host AMI on both and "
        "set this AMI as inference_ami_version of both platforms"
    )


def _text(name: str | None) -> str:
    return "SageMaker's default host" if name is None else name
