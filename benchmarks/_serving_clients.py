"""Clients of `serving_many.py`, in a process of their own: `python _serving_clients.py PATH ENSEMBLES SECONDS THINK`.

Each of 32 clients pauses, asks for an ensemble, and reads the answer, again and again. The ensembles follow Zipf's law.
Each request is a line on standard output: ensemble, the times when it was sent and answered, and the answer or the
error.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from itertools import accumulate

import boto3
import numpy as np
from botocore.config import Config

from cdk_triton.client import TritonClient

CLIENTS = 32
EXPONENT = 1.1


def main(path: str, ensembles: int, seconds: float, think: float) -> None:
    """Ask until the time is up."""
    # Nothing is sent again, so that every error is counted.
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=CLIENTS, read_timeout=90)
    client = TritonClient.from_parameters(path, boto3.client("sagemaker-runtime", config=config))
    weights = list(accumulate(1 / rank**EXPONENT for rank in range(1, ensembles + 1)))
    lock, end = threading.Lock(), time.time() + seconds

    def ask(number: int) -> None:
        chance = random.Random(number)
        while True:
            time.sleep(min(chance.expovariate(1 / think), max(0.0, end - time.time())))
            if time.time() >= end:
                return
            [ensemble] = chance.choices(range(ensembles), cum_weights=weights)
            row: dict[str, object] = {"ensemble": ensemble, "sent": time.time()}
            try:
                result = client.infer({"IN": np.zeros((1, 1), np.float32)}, ensemble=name_of(ensemble))
                row["answer"] = float(result["OUT"][0][0])
            except Exception as error:  # a client that ended here would hide the errors that follow
                row |= {"error": type(error).__name__, "message": str(error)[:300]}
            row["ended"] = time.time()
            with lock:
                print(json.dumps(row), flush=True)

    threads = [threading.Thread(target=ask, args=[number]) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def name_of(ensemble: int) -> str:
    """The name of an ensemble."""
    return f"tenant-{ensemble:04}"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
