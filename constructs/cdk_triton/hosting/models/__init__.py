"""Models, single and multi-model: from a checked repository to a SageMaker Model with its role.

`assets` puts archives and build plans into the cloud assembly; `delivery` contains the custom resource that brings the
archives into the store during the deployment. `publishing` adds ensembles to a multi-model endpoint without a
deployment. `interface` is what an endpoint needs from a model.
"""
