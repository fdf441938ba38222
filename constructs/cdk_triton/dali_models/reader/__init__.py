"""Reads files of the DALI backend. They are parsed, never executed."""
