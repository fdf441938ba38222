"""`ServingPlatform`: release and instance type that serve the models, written once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from cdk_triton._arguments import TEXT, one, require_type
from cdk_triton._tokens import has_token, reject_token
from cdk_triton._wording import did_you_mean, in_words, quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import images
from cdk_triton.sagemaker.host_amis import HOST_AMIS, host_ami, warning_about_host_ami
from cdk_triton.sagemaker.instances import GpuInstance, gpu_instance, gpu_instances
from cdk_triton.sagemaker.limits import MAX_IMAGE_LENGTH
from cdk_triton.triton.releases import Release, releases
from cdk_triton.triton.releases import release as release_facts

__all__ = ["DERIVED", "PLATFORM", "ServingPlatform", "derived_host_ami", "is_swapped", "platform_of"]

DERIVED: Final = "derived"
"""Makes `ServingPlatform` derive the host AMI from the CUDA version of its release and from its GPU."""

_WORDS = {
    "python": "the Python version",
    "onnxruntime": "the ONNX Runtime version",
    "tensorrt": "the TensorRT version",
    "min_compute_capability": "the oldest supported GPU",
}

_RELEASE = re.compile(r"\d\d\.\d\d")
_BY_DIGEST = re.compile(r"[^\s@]+@(?P<digest>sha256:[0-9a-f]{64})")
_HOST_AMI = re.compile(r"[a-z0-9]+-ami-sagemaker-inference-[a-z0-9-]+")


@dataclass(frozen=True, kw_only=True)
class ServingPlatform:
    """The Triton release and the instance type that serve a model. They determine the image, the GPU and the host AMI.

    Constructs and checks also accept the short form of a platform with SageMaker's image, such as
    `platform="25.09/ml.g5.2xlarge"`. Two platforms with the same `label` have the same image and the same kind of GPU,
    so they load the same archives.

    Attributes:
        instance_type: a SageMaker instance type with an NVIDIA GPU, such as "ml.g5.2xlarge".
        release: the Triton container release, such as "25.09". Your own image needs no release. If you give one, the
            library assumes the versions of this release for the image. For a release that is newer than the library's
            tables, it assumes the versions of the newest release in the tables.
        image: your own image instead of SageMaker's image, by digest: "<registry>/<repository>@sha256:<64 hex digits>".
            Registry and repository may contain CDK tokens, but the digest may not.
        inference_ami_version: the host AMI (CloudFormation's `InferenceAmiVersion`). By default, the library derives it
            from the release's CUDA version and the GPU, as `host_ami` describes; this has not been confirmed on AWS.
            With None, SageMaker chooses the host AMI, as it does by default for your own image without a release. When
            you replace the release or the instance type with `dataclasses.replace`, also pass
            `inference_ami_version="derived"`. Otherwise the new platform keeps the host AMI of the old one.

    Raises:
        ConfigurationError: the release or the instance type does not exist; `image` has no valid digest; SageMaker does
            not offer the instance type for endpoints; or the image or the release does not support the instance type.
    """

    instance_type: str
    release: str | None = None
    image: str | None = None
    inference_ami_version: str | None = DERIVED

    def __post_init__(self) -> None:
        """Check what the tables contain, then derive the host AMI."""
        _reject_non_text(self)
        if self.release is None and self.image is None:
            raise ConfigurationError(
                "a ServingPlatform needs a release, such as release='25.09', or an image of your own by digest"
            )
        if self.image is not None:
            _check_own_image(self.image)
        elif self.release is not None:
            _check_published_release(self.release)
        _check_instance(self)
        if self.inference_ami_version == DERIVED:
            object.__setattr__(self, "inference_ami_version", derived_host_ami(self))
        elif self.inference_ami_version is not None:
            _check_host_ami(self.inference_ami_version)

    @property
    def versions(self) -> Release | None:
        """The versions inside the image, or None for your own image without a release."""
        return None if self.release is None else release_facts(self.release)

    @property
    def instance(self) -> GpuInstance:
        """The facts about the instance type."""
        return gpu_instance(self.instance_type)

    @property
    def gpu(self) -> str:
        """The GPU's name, such as "NVIDIA A10G"."""
        return self.instance.gpu

    @property
    def compute_capability(self) -> str:
        """The GPU's compute capability, such as "8.6"."""
        return self.instance.compute_capability

    @property
    def gpu_memory_gb(self) -> int:
        """The nominal memory of one GPU, in GB."""
        return self.instance.gpu_memory_gb

    @property
    def gpu_count(self) -> int:
        """The number of GPUs of one instance."""
        return self.instance.gpu_count

    @property
    def host_ami_warning(self) -> str | None:
        """Why the host AMI may not fit this GPU and the release's CUDA version; None if no reason is known.

        A derived AMI fits as far as is known, except with CUDA 12 on Blackwell, because no AMI suits both. An AMI that
        you gave, or that `dataclasses.replace` kept, may not fit.
        """
        cuda = self.versions.cuda if self.versions is not None else None
        return warning_about_host_ami(self.inference_ami_version, cuda, self.instance)

    @property
    def release_warning(self) -> str | None:
        """A warning if this library only assumes some of the release's versions; None if it assumes no version."""
        versions = self.versions
        if versions is None or not versions.assumed:
            return None
        fields = in_words([_WORDS[field] for field in versions.assumed], "and")
        return f"this version of cdk-triton has no source for {fields} of Triton {versions.release}"

    @property
    def image_identity(self) -> str:
        """The identity of the image, wherever it is stored: "sagemaker-tritonserver:25.09-py3" or "sha256:…"."""
        if self.image is not None:
            return _digest(self.image)
        assert self.release is not None  # __post_init__ asked for one of the two
        return images.image_name(self.release)

    @property
    def label(self) -> str:
        """Image and GPU in one word, such as "25.09-a10g", for names and S3 prefixes.

        The label of your own image contains the first 12 digits of its digest, because the image may differ from
        SageMaker's image of the same release. Without a release, it begins with `own`.
        """
        parts = [self.release or "own"]
        if self.image is not None:
            parts.append(_digest(self.image).removeprefix("sha256:")[:12])
        gpu = re.sub(r"[^a-z0-9]+", "-", self.gpu.removeprefix("NVIDIA ").lower())
        return "-".join([*parts, gpu])

    def image_uri(self, region: str) -> str:
        """The image's URI, for a region that is known while the app runs.

        If the region is a token, put the map that `cdk_triton.sagemaker.accounts` returns into the template instead.

        Raises:
            ConfigurationError: the region is a token, or SageMaker has no such image there.
        """
        require_type("region", region, TEXT)
        if self.image is not None:
            return self.image
        assert self.release is not None  # __post_init__ asked for one of the two
        reject_token(region, "the region")
        return images.image_uri(self.release, region)


PLATFORM: Final = one(
    lambda value: isinstance(value, ServingPlatform | str),
    "use a ServingPlatform, such as ServingPlatform(release='25.09', instance_type='ml.g5.2xlarge'), or its short form "
    "'25.09/ml.g5.2xlarge'",
)
"""As an argument."""


def platform_of(platform: ServingPlatform | str) -> ServingPlatform:
    """The platform, which may be given in its short form, such as "25.09/ml.g5.2xlarge".

    Raises:
        ConfigurationError: the text lacks the release or the instance type, or there is no such platform.
    """
    if isinstance(platform, ServingPlatform):
        return platform
    release, _, instance_type = platform.partition("/")
    if not (release and instance_type):
        raise ConfigurationError(
            f"the platform {quoted(platform)} is not a release and an instance type: write both, such as "
            "'25.09/ml.g5.2xlarge'"
        )
    if is_swapped(release, instance_type):
        raise ConfigurationError(
            f"the platform {quoted(platform)} has the instance type first: write '{instance_type}/{release}'"
        )
    return ServingPlatform(release=release, instance_type=instance_type)


def is_swapped(release: str, instance_type: str) -> bool:
    """Whether the two parts of a platform's short form are in the wrong order."""
    return _RELEASE.fullmatch(instance_type) is not None and _RELEASE.fullmatch(release) is None


def _reject_non_text(platform: ServingPlatform) -> None:
    # release=25.10 is a float and would read 25.1.
    for name in ("instance_type", "release", "image", "inference_ami_version"):
        value: object = getattr(platform, name)
        if value is not None or name == "instance_type":
            require_type(name, value, TEXT)
    reject_token(platform.instance_type, "instance_type")
    reject_token(platform.release or "", "release")


def _check_published_release(release: str) -> None:
    published = images.image_releases()
    if release in published:
        return
    try:
        release_facts(release)
    except ConfigurationError:
        raise ConfigurationError(
            f"{quoted(release)} is not a known Triton release{did_you_mean(release, published)}: SageMaker has "
            f"images of {in_words(published, 'and')}"
        ) from None
    if release > (newest := releases()[-1].release):
        raise ConfigurationError(
            f"Triton {release!r} is newer than {newest}, the newest release that this version of cdk-triton supports, "
            f"and than {published[-1]}, SageMaker's newest image: use a release up to {published[-1]} or update "
            f"cdk-triton{images.OR_OWN_IMAGE}"
        )
    images.image_name(release)  # raises an error with the nearest releases


def _check_own_image(image: str) -> None:
    if has_token(_digest(image).rpartition("/")[2]):
        raise ConfigurationError(
            "the digest of image is an unresolved token, but synth needs the digest to decide what to build: write the "
            "digest itself, as <registry>/<repository>@sha256:<64 hexadecimal digits>; only registry and repository "
            "may be tokens"
        )
    if _BY_DIGEST.fullmatch(image) is None:
        raise ConfigurationError(
            f"image {quoted(image)} must be named by its digest, as <registry>/<repository>@sha256:<64 hexadecimal "
            "digits>: a tag can be moved to another image, and archives that are built for one image must be served "
            "by exactly that image"
        )
    if len(image) > MAX_IMAGE_LENGTH and not has_token(image):
        raise ConfigurationError(
            f"image {quoted(image)} is longer than the {MAX_IMAGE_LENGTH} characters that SageMaker accepts: shorten "
            "the name of its repository"
        )


def _digest(image: str) -> str:
    return image.rpartition("@")[2]


def _check_instance(platform: ServingPlatform) -> None:
    instance = platform.instance
    if not instance.hosting:
        raise ConfigurationError(
            f"{instance.name} cannot serve an endpoint, because SageMaker does not offer this type for hosting: use "
            f"one of the types with the same GPU, {in_words(_same_gpu(instance))}"
        )
    if instance.host != "x86_64" and platform.image is None:
        raise ConfigurationError(
            f"{instance.name} has an Arm host, but SageMaker's Triton images are for x86-64 only: use another "
            f"instance type{images.OR_OWN_IMAGE}"
        )
    versions = platform.versions
    needed = versions and versions.min_compute_capability
    if needed and _number(instance.compute_capability) < _number(needed):
        raise ConfigurationError(
            f"{instance.name} has the GPU {instance.gpu} of compute capability {instance.compute_capability}, but "
            f"Triton {platform.release} needs {needed} or higher: {_fix_for_old_gpu(instance)}"
        )


def _fix_for_old_gpu(instance: GpuInstance) -> str:
    capability = _number(instance.compute_capability)
    for release in reversed(images.image_releases()):
        needed = release_facts(release).min_compute_capability
        if needed and _number(needed) <= capability:
            return f"use a release up to {release}, or an instance type with a newer GPU, such as ml.g4dn.xlarge"
    return "use an instance type with a newer GPU, such as ml.g4dn.xlarge"


def _same_gpu(instance: GpuInstance) -> list[str]:
    return [other.name for other in gpu_instances().values() if other.gpu == instance.gpu and other.hosting]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def derived_host_ami(platform: ServingPlatform) -> str | None:
    """The host AMI that a platform has by default."""
    if platform.versions is None:
        return None
    return host_ami(platform.versions.cuda, platform.compute_capability)


def _check_host_ami(name: str) -> None:
    if _HOST_AMI.fullmatch(name) is None and not has_token(name):
        known = [ami.name for ami in HOST_AMIS]
        raise ConfigurationError(
            f"inference_ami_version {quoted(name)} is not a host AMI{did_you_mean(name, known)}: use "
            f"{in_words(known)}, or None for SageMaker's default host; omit inference_ami_version, and cdk-triton "
            "derives the host AMI from the release"
        )
