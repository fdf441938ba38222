"""`cdk-triton init`: a project with an app, its test and a whole ensemble, of an example or of the user's models.

* `files/`: the files of the project. Each name ends with `.txt`, so no tool takes a file for a part of this project.
* `network`: the network of the ensemble, which is computed.
* `own`: what depends on the user's models.
* `requirement`: the line that installs this version of the library again.
"""

from __future__ import annotations

from cdk_triton.cli.init.command import InitCommand, init

__all__ = ["InitCommand", "init"]
