"""What synth, the Lambda functions, the command and the client exchange; each module both writes and reads its subject.

The modules need the standard library only, and import each other relatively. So the same directory is
`cdk_triton.protocol` here and, by the link `lambda/protocol`, the package `protocol` beside the handlers in Lambda.
"""
