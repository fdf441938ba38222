"""Rehearsals: from golden requests in files to the folder that the program of `gpu_build` rehearses.

* `files` reads requests and expected answers, and gives them the form in which the server takes and returns them;
* `requests` reads those of a repository;
* `document` writes `rehearsal.json`, which says what to rehearse, and the folder;
* `variables` has the variables of the container;
* `prepared` has the rehearsal of an archive: its key, and the ZIP file of its bodies.
"""
