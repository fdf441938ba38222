"""The resource types of the local CloudFormation, one module per service.

`base` contains the base class and the registry, `_calls` the helpers that the types share. Every module of this package
is imported here, which registers its types.
"""

import importlib
import pkgutil

from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    Mailbox,
    PhysicalResource,
    ResourceType,
    Services,
    find,
    is_custom,
    register,
    registered,
)

__all__ = [
    "Context",
    "Mailbox",
    "PhysicalResource",
    "ResourceType",
    "Services",
    "find",
    "is_custom",
    "register",
    "registered",
]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
