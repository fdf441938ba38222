"""SageMaker's endpoints, without the servers behind them.

* `hosting` contains what the control plane and the hosting exchange: `Endpoint`, `Invocation`, `Response` and the
  protocol `EndpointHost`. These are the names below; importing them imports nothing else.
* `operations` answers CreateEndpoint, UpdateEndpoint and the others: it keeps their state and calls an `EndpointHost`;
* `rejected_updates` has the changes that SageMaker rejects, because of how the endpoint is configured now;
* `traffic` moves requests to new instances step by step, and watches alarms meanwhile;
* `variant_capacities` computes the weights and instance counts that DescribeEndpoint reports;
* `instance_pools` chooses the instances of a variant, and `capacity` contains how many there are;
* `instance_changes` keeps an endpoint `Updating` while its number of instances changes;
* `components` answers the operations on inference components, `components_room` computes where their copies have room;
* `metrics` publishes the CloudWatch metrics of endpoints;
* `async_host` is an `EndpointHost` around another one, which answers asynchronous requests, and `async_queue` has the
  queue of each endpoint;
* `data_capture` is an `EndpointHost` around another one, which writes captured requests and answers to S3.

The host that runs real servers is `cdk_triton_local.triton.TritonHost`.
"""

from cdk_triton_local.endpoints.hosting import (
    AsyncConfig,
    BrokenStreamError,
    Component,
    Container,
    DataCapture,
    Endpoint,
    EndpointHost,
    Invocation,
    Response,
    Shift,
    StreamedResponse,
    Variant,
    all_at_once,
)

__all__ = [
    "AsyncConfig",
    "BrokenStreamError",
    "Component",
    "Container",
    "DataCapture",
    "Endpoint",
    "EndpointHost",
    "Invocation",
    "Response",
    "Shift",
    "StreamedResponse",
    "Variant",
    "all_at_once",
]
