"""Endpoints and their settings.

`variants` are the models of an endpoint on their instances; `components` are copies of models that share instances.
`updates` sets how SageMaker updates an endpoint, and when it rolls an update back; `asynchronous` is for endpoints with
a queue; `scaling` follows the load, and `monitoring` reports it.
"""
