"""Endpoints: what serves models, and everything that is set on it.

`variants` are the models of an endpoint on their instances, `components` are copies of models that share instances.
`updates` says how SageMaker changes an endpoint and when it goes back; `asynchronous` has endpoints with a queue;
`scaling` and `monitoring` follow the load and report it.
"""
