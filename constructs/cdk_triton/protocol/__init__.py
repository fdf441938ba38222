"""The documents that synth, Lambda functions, command and client exchange; each module writes and reads one kind.

The modules need the standard library only, and import each other relatively. So the same directory is
`cdk_triton.protocol` here and, by the link `lambda/protocol`, the package `protocol` beside the handlers in Lambda.
"""
