"""Rehearses a repository: starts the server that will serve it, sends golden requests, and compares the answers.

* `document` reads `rehearsal.json`, which says what to rehearse;
* `server` starts the image's own `serve`, as SageMaker does, and stops it: `account` says who runs it in a job, and
  `processes` ends what it leaves;
* `tensors` reads the bodies of answers, and `comparison` compares them with what is expected;
* `privacy` keeps text of requests out of messages and logs;
* `repetition` measures the latency, and `memory` the memory;
* `session` is the course of a rehearsal, and checks the budgets;
* `run` begins it, and writes `rehearsal.json` of the output folder.
"""
