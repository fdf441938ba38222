"""The progress of an execution's map, asked for less and less often.

Step Functions answers one `ListMapRuns` and one `DescribeMapRun` per second in an account ("Service quotas",
https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html). So each map run is looked up once, and the
pauses grow from one poll to 16, or to 64 while AWS rejects the request. This way, 30 commands can follow executions.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts.aws import code_of

__all__ = ["MapProgress"]

_LONGEST_PAUSE: Final = 16
_LONGEST_THROTTLED: Final = 64
_DENIED: Final = ("AccessDenied", "AccessDeniedException")
_THROTTLED: Final = ("ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded")


class MapProgress:
    """The items of an execution's map.

    Args:
        states: a boto3 client of Step Functions.
        execution: the ARN of the execution.

    Attributes:
        unit: what the items are, in the plural.
        seconds: the time from the start of the map run to the answer with the last known items.
    """

    def __init__(self, states: Any, execution: str) -> None:
        self._states = states
        self._execution = execution
        self.unit = "ensembles"
        self.seconds = 0.0
        self._run: str | None = None
        self._counts: dict[str, int] | None = None
        self._pause, self._left = 1, 0

    def counts(self) -> dict[str, int] | None:
        """The last known items by their state, for one poll; None if they are not known.

        Raises:
            ClientError, BotoCoreError: AWS rejected a call.
        """
        if self._left:
            self._left -= 1
            return self._counts
        longest = _LONGEST_PAUSE
        try:
            self._counts = self._ask()
        except ClientError as error:
            if code_of(error) not in (*_DENIED, *_THROTTLED):
                raise
            longest = _LONGEST_THROTTLED
        self._left, self._pause = self._pause - 1, min(2 * self._pause, max(longest, self._pause))
        return self._counts

    def _ask(self) -> dict[str, int] | None:
        if self._run is None:
            runs = self._states.list_map_runs(executionArn=self._execution)["mapRuns"]
            if not runs:
                return None
            self._run = str(max(runs, key=lambda run: run["startDate"])["mapRunArn"])
        run = self._states.describe_map_run(mapRunArn=self._run)
        # Batches of builds come first; Step Functions names a map run after its state if this has a label.
        # The clock of AWS may be ahead of the one here.
        self.seconds = max(0.0, (datetime.now(UTC) - run["startDate"]).total_seconds())
        self.unit = "builds" if "/Builds:" in self._run else "ensembles"
        if run["status"] != "RUNNING":
            self._run = None
        return dict(run["itemCounts"])
