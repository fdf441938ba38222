"""The rules about models of the DALI backend."""
