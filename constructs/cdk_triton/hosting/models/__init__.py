"""Models, single and multi-model: from a checked repository to a SageMaker Model with its role."""
