"""`cdk-triton doctor`: finds the faults that would make a first deployment fail.

A check is a function that looks at one thing and gives one `Answer`. Those of `workstation` look at this machine, those
of `account` and `capacity` call AWS, with the caller's own permissions; nothing is changed anywhere. boto3 is imported
when the command runs, because `--help` does not need it.
"""

from __future__ import annotations

from cdk_triton.cli.doctor.command import doctor

__all__ = ["doctor"]
