"""Messages to users, and names in CloudFormation.

Findings and acknowledgements in the CDK's form, runbooks in alarms, names and prefixes of resources, logical ids,
references between stacks, and helpers for tokens, stacks and constructs.
"""
