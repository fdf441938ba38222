"""The artifact store: its bucket and the handlers that fill it.

`builds` contains the builders of a store, which run jobs on the GPU that will serve. `provider` passes CloudFormation's
requests to the handlers. `shared` is the store of another app, and `imported` the store of another account or region;
`interface` is what all stores have in common.
"""
