"""`cdk-triton config`: a first `config.pbtxt` of a network, and the ensemble of several models.

* `faces`: what a model takes and gives, according to its file.
* `connections`: which output of which model an input reads.
* `writing`: the configurations as text.
* `drafting`: all of it, as the files of a repository.
"""

from __future__ import annotations

from cdk_triton.cli.config.command import config

__all__ = ["config"]
