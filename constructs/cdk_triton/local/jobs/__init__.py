"""Jobs of the local AWS, CodeBuild's builds and SageMaker's Processing jobs: their commands run on this machine."""
