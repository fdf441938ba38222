"""Which images SageMaker has, and where."""

from __future__ import annotations

import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import accounts, image_name, image_releases, image_uri
from cdk_triton.triton import releases


@pytest.mark.parametrize(
    ("release", "region", "uri"),
    [
        # The accounts changed at 23.12 (aws/sagemaker-python-sdk PR #4432).
        ("23.10", "us-east-1", "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.10-py3"),
        ("23.12", "us-east-1", "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.12-py3"),
        ("22.07", "eu-west-1", "802834080501.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver:22.07-py3"),
        ("26.05", "eu-south-1", "692866216735.dkr.ecr.eu-south-1.amazonaws.com/sagemaker-tritonserver:26.05-py3"),
        # aws-cdk-lib 2.275 knows no account there (region-info, dlcRepositoryAccount).
        ("25.09", "mx-central-1", "637423239942.dkr.ecr.mx-central-1.amazonaws.com/sagemaker-tritonserver:25.09-py3"),
        ("25.04", "cn-north-1", "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-tritonserver:25.04-py3"),
        (
            "23.10",
            "cn-northwest-1",
            "474822919863.dkr.ecr.cn-northwest-1.amazonaws.com.cn/sagemaker-tritonserver:23.10-py3",
        ),
    ],
)
def test_an_image_is_in_the_registry_of_its_release_and_region(release: str, region: str, uri: str) -> None:
    assert image_uri(release, region) == uri


def test_every_image_has_a_uri_in_every_region_that_offers_it() -> None:
    for release in image_releases():
        for region, account in accounts(release).items():
            assert image_uri(release, region).startswith(f"{account}.dkr.ecr.{region}.amazonaws.com")


@pytest.mark.parametrize(
    ("release", "count"), [("22.07", 22), ("23.10", 22), ("23.12", 26), ("24.09", 26), ("25.04", 35), ("26.05", 34)]
)
def test_a_release_is_offered_in_as_many_regions_as_its_source_lists(release: str, count: int) -> None:
    assert len(accounts(release)) == count


def test_the_images_and_the_table_of_releases_agree() -> None:
    assert list(image_releases()) == [row.release for row in releases() if row.sagemaker_image]


def test_images_without_a_published_list_of_regions_are_where_their_neighbours_are() -> None:
    assert accounts("26.03") == accounts("26.04") == accounts("25.09") == accounts("26.05")


@pytest.mark.parametrize(
    ("release", "region", "beginning"),
    [
        (
            "25.09",
            "us-esat-1",
            "SageMaker has no image of Triton 25.09 in the region 'us-esat-1' (did you mean 'us-west-1' or "
            "'us-east-1'?): use one of af-south-1, ap-east-1, ",
        ),
        (
            "25.09",
            "cn-north-1",
            "SageMaker has no image of Triton 25.09 in the region 'cn-north-1', where the newest is 25.04: use one "
            "of af-",
        ),
        (
            "24.09",
            "ap-southeast-6",
            "SageMaker has no image of Triton 24.09 in the region 'ap-southeast-6', where the oldest is 25.09: use "
            "one of ",
        ),
        (
            "25.09",
            "us-gov-west-1",
            "SageMaker has no image of Triton 25.09 in the region 'us-gov-west-1', none of this library's sources "
            "names an account there: use one of af-south-1, ",
        ),
    ],
)
def test_a_region_without_the_image_is_refused_with_the_regions_that_have_it(
    release: str, region: str, beginning: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        image_uri(release, region)
    message = str(error.value)
    assert message.startswith(beginning)
    assert message.endswith("us-west-1 or us-west-2, or give the serving platform an image of your own by digest")
    assert all(region in message for region in accounts(release))


@pytest.mark.parametrize(
    ("release", "nearest"),
    [("26.06", "26.05"), ("25.05", "25.04 or 25.09"), ("20.01", "22.07"), ("24.02", "24.01 or 24.03")],
)
def test_a_release_without_an_image_is_refused_with_the_nearest_that_have_one(release: str, nearest: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        image_name(release)
    assert str(error.value) == (
        f"SageMaker has no image of Triton {release!r}: use {nearest}, or build an image of your own and give it by "
        "digest"
    )
