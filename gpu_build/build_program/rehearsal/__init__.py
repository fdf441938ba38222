"""Rehearses a repository: starts the server that will serve it, sends golden requests, and compares the answers.

* `document` reads `rehearsal.json`, which says what to rehearse;
* `server` starts the image's own `serve`, as SageMaker does, and stops it;
* `tensors` reads the bodies of answers, and `comparison` compares them with what is expected;
* `run` puts them together, and writes `rehearsal.json` of the output folder.
"""
