"""A bucket that is deleted with its objects, which `auto_delete_objects=True` asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tests.local_aws.cloudformation.test_custom_resources import ROLE, outputs, role

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

__all__ = ["role"]


class TestAutoDeleteObjects:
    """What `auto_delete_objects=True` of a bucket synthesises, less the role and the bucket's policy."""

    TAG: ClassVar = {"Key": "aws-cdk:auto-delete-objects", "Value": "true"}

    def template(self, **bucket: Any) -> dict[str, Any]:
        return {
            "Resources": {
                "Store": {
                    "Type": "AWS::S3::Bucket",
                    "Properties": {"VersioningConfiguration": {"Status": "Enabled"}, **bucket},
                },
                "Handler": {
                    "Type": "AWS::Lambda::Function",
                    "Properties": {
                        "Code": {"ZipFile": "// not run"},
                        "Handler": "index.handler",
                        "Role": ROLE,
                        "Runtime": "nodejs22.x",
                    },
                },
                "Empty": {
                    "Type": "Custom::S3AutoDeleteObjects",
                    "Properties": {
                        "ServiceToken": {"Fn::GetAtt": ["Handler", "Arn"]},
                        "BucketName": {"Ref": "Store"},
                    },
                },
            },
            "Outputs": {"Store": {"Value": {"Ref": "Store"}}},
        }

    def filled(self, deployer: Deployer, name: str) -> str:
        """Put two versions of one object and a delete marker into the bucket of a stack."""
        bucket, s3 = outputs(deployer, name)["Store"], deployer.aws.client("s3")
        for body in (b"1", b"2"):
            s3.put_object(Bucket=bucket, Key="model.tar.gz", Body=body)
        s3.put_object(Bucket=bucket, Key="other", Body=b"")
        s3.delete_object(Bucket=bucket, Key="other")
        return bucket

    def test_a_deletion_empties_the_bucket_with_all_versions(self, deployer: Deployer) -> None:
        name = deployer.new_name()
        deployer.deploy(self.template(Tags=[self.TAG]), name)
        bucket = self.filled(deployer, name)
        assert deployer.delete(name) == "DELETE_COMPLETE"
        assert bucket not in {each["Name"] for each in deployer.aws.client("s3").list_buckets()["Buckets"]}

    def test_another_bucket_empties_the_one_before(self, deployer: Deployer) -> None:
        name = deployer.new_name()
        deployer.deploy(self.template(Tags=[self.TAG]), name)
        bucket = self.filled(deployer, name)
        assert deployer.deploy(self.template(Tags=[self.TAG], BucketName="the-next"), name) == "UPDATE_COMPLETE"
        assert {each["Name"] for each in deployer.aws.client("s3").list_buckets()["Buckets"]} & {
            bucket,
            "the-next",
        } == {"the-next"}

    def test_a_bucket_that_lost_its_tag_keeps_its_objects(self, deployer: Deployer) -> None:
        name = deployer.new_name()
        deployer.deploy(self.template(Tags=[self.TAG]), name)
        bucket = self.filled(deployer, name)
        kept = self.template()
        del kept["Resources"]["Empty"]
        assert deployer.deploy(kept, name) == "UPDATE_COMPLETE"
        assert deployer.aws.client("s3").list_object_versions(Bucket=bucket)["Versions"]
