"""Which images SageMaker has, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import accounts, image_name, image_release, image_releases, image_uri
from cdk_triton.triton import releases

if TYPE_CHECKING:
    from golden_messages import Messages


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
    ("release", "region"),
    [
        pytest.param("25.09", "us-esat-1", id="misspelt"),
        pytest.param("25.09", "cn-north-1", id="too new for the region"),
        pytest.param("24.09", "ap-southeast-6", id="too old for the region"),
        pytest.param("25.09", "us-gov-west-1", id="unknown region"),
    ],
)
def test_a_region_without_the_image_is_rejected_with_the_regions_that_have_it(
    messages: Messages, release: str, region: str
) -> None:
    with messages.raises(ConfigurationError) as error:
        image_uri(release, region)
    assert all(region in str(error.value) for region in accounts(release))


@pytest.mark.parametrize(
    ("release", "nearest"),
    [("26.06", "26.05"), ("25.05", "25.04 or 25.09"), ("20.01", "22.07"), ("24.02", "24.01 or 24.03")],
)
def test_a_release_without_an_image_is_rejected_with_the_nearest_that_have_one(
    messages: Messages, release: str, nearest: str
) -> None:
    with messages.raises(ConfigurationError) as error:
        image_name(release)
    assert f" {nearest}, " in str(error.value)


@pytest.mark.parametrize(
    ("uri", "release"),
    [
        pytest.param(image_uri("25.09", "us-east-1"), "25.09", id="of SageMaker"),
        pytest.param("1.dkr.ecr.us-east-1.amazonaws.com/own:25.09-py3", None, id="own image"),
        pytest.param("1.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver@sha256:0", None, id="by digest"),
    ],
)
def test_a_tag_of_sagemaker_names_the_release(uri: str, release: str | None) -> None:
    assert image_release(uri) == release
