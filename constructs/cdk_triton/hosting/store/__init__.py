"""The artifact store: its bucket and the handlers that fill it.

`builds` has the builders of a store, which run jobs on the GPU that will serve. `provider` brings CloudFormation's
requests to the handlers. A store of another stack or app is `shared` or `imported`; `interface` is what all have in
common.
"""
