"""From sources to archives: keys, digests and the archive writer. Nothing here imports `aws_cdk`."""

from cdk_triton.artifacts.archive import Archive, write_archive
from cdk_triton.artifacts.contents import PLACEHOLDER
from cdk_triton.artifacts.keys import BUILDER_VERSION, artifact_key, source_key

__all__ = ["BUILDER_VERSION", "PLACEHOLDER", "Archive", "artifact_key", "source_key", "write_archive"]
