"""Models, single and multi-model: from a checked repository to a SageMaker Model with its role.

`assets` puts archives and plans into the cloud assembly, `delivery` has the custom resource that brings them into the
store during the deployment. `publishing` adds ensembles to a multi-model endpoint without a deployment. `interface` is
what an endpoint needs of a model.
"""
