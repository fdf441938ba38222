"""Jobs, CodeBuild's builds and SageMaker's Processing jobs: their commands run on this machine.

* `codebuild` answers CodeBuild's operations; `build` runs one build, whose commands `buildspec` reads;
* `processing` answers SageMaker's operations on Processing jobs; `processing_job` runs one of them;
* `context` contains what a job needs of the local AWS, `machine` the GPU and the tools that it is given;
* `runner` runs a job's commands, `folders` moves files from and to S3, `log` writes to CloudWatch Logs.
"""

from cdk_triton_local.jobs.codebuild import CodeBuild
from cdk_triton_local.jobs.context import LocalContext
from cdk_triton_local.jobs.log import put_function_log
from cdk_triton_local.jobs.processing import Processing

__all__ = ["CodeBuild", "LocalContext", "Processing", "put_function_log"]
