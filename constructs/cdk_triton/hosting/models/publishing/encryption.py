"""Encrypts the definition of a publisher's state machine and the data of its executions with the user's key.

The source is "Data at rest encryption in Step Functions" in the developer guide,
https://docs.aws.amazon.com/step-functions/latest/dg/encryption-at-rest.html.
"""

from __future__ import annotations

from aws_cdk import ArnFormat
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_stepfunctions as sfn
from constructs import IConstruct

from cdk_triton.hosting.access.keys import condition_in_words, has_own_policy, warn_about_key
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["encryption", "let_log_delivery_decrypt"]

LOG_DELIVERY_SERVICE = "delivery.logs.amazonaws.com"


def encryption(key: kms.IKey | None) -> sfn.CfnStateMachine.EncryptionConfigurationProperty:
    """Encrypt with a key, or with AWS's own key.

    AWS's own key is also named explicitly, because a machine keeps its key when the property is removed ("Changing
    Encryption" in the CDK's page on Step Functions).
    """
    if key is None:
        return sfn.CfnStateMachine.EncryptionConfigurationProperty(type="AWS_OWNED_KEY")
    return sfn.CfnStateMachine.EncryptionConfigurationProperty(type="CUSTOMER_MANAGED_KMS_KEY", kms_key_id=key.key_arn)


def let_log_delivery_decrypt(scope: IConstruct, key: kms.IKey) -> None:
    """Let the log delivery service decrypt the events of an encrypted state machine, or warn that it needs permission.

    The role of the machine encrypts each event for the delivery, and the encryption context names the logs of the
    account. The service decrypts with the same context, and can do nothing else with the key.
    """
    context = stack_of(scope).format_arn(service="logs", resource="*", arn_format=ArnFormat.COLON_RESOURCE_NAME)
    condition = {"StringLike": {"kms:EncryptionContext:SourceArn": context}}
    if not has_own_policy(key):
        warn_about_key(
            scope,
            key,
            f"{LOG_DELIVERY_SERVICE} to decrypt with the key (kms:Decrypt) under the condition "
            f"{condition_in_words(scope, key, condition)}",
        )
    key.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal(LOG_DELIVERY_SERVICE)],
            actions=["kms:Decrypt"],
            resources=["*"],
            conditions=condition,
        )
    )
