"""How the constructs speak to people and to CloudFormation.

Findings and acknowledgements in the CDK's ways, runbooks in alarms, names and prefixes of resources, logical ids,
references between stacks, and small questions about tokens, stacks and constructs that every layer asks.
"""
