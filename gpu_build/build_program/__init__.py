"""The program that builds artifacts in the image that serves them; standard library only, Python 3.8 and newer.

It reads a folder and writes a folder; the service that runs it moves both. So it needs no credentials.
"""
