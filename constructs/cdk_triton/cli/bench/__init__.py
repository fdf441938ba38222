"""`cdk-triton bench`: load on an endpoint, and the settings for scaling that follow from it.

The load is an open loop: the time of each request is fixed in advance, whatever the endpoint does, and its latency
counts from that time. A closed loop, in which users wait for answers, sends less as soon as the endpoint is slow, and
so hides the latency that it should measure ("coordinated omission").
"""

from __future__ import annotations

from cdk_triton.cli.bench.command import bench

__all__ = ["bench"]
