"""Permissions, keys and networks.

Statements and trust policies of roles; keys and buckets; the network of functions, builds and instances, with the VPC
endpoints that it needs; and the images that a role can pull.
"""
