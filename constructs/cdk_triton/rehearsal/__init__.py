"""Rehearsals: from golden requests in files to the folder that the program of `gpu_build` rehearses.

* `files` reads requests and expected answers, and gives them the form in which the server takes and returns them;
* `folder` writes the folder.
"""
