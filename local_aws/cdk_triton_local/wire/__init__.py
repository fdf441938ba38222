"""The wire formats of AWS's APIs: a request is parsed and checked, and its answer shaped, by botocore's service models.

* `query_api`: the AWS Query protocol, for CloudFormation;
* `json_api`: AWS JSON 1.1, for CodeBuild, SageMaker, Service Quotas and ECR;
* `event_stream`: the messages of a streamed answer;
* `reply`: the HTTP answer that both make.
"""

from cdk_triton_local.wire import event_stream
from cdk_triton_local.wire.json_api import JsonApi, JsonApiError, checked_members
from cdk_triton_local.wire.query_api import QueryApiError
from cdk_triton_local.wire.reply import Reply

__all__ = ["JsonApi", "JsonApiError", "QueryApiError", "Reply", "checked_members", "event_stream"]
