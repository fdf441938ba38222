"""Models and fleets: from a checked repository to a SageMaker Model with its role."""
