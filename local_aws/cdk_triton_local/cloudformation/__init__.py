"""A strict CloudFormation over the local AWS: what it does not model is an error, never a silent success.

From a request to a resource:

* `api` answers the operations of CloudFormation's API, and `describe` shapes the answers;
* `engine` contains the stacks, and runs one operation at a time on each;
* `template`, `parameters`, `intrinsics` and `schema` read a template and resolve its values;
* `plan` computes what a deployment would change, and `order` in which order; `resource_imports` plans imports;
* `deployment` carries out these changes: create, import, update, rollback, delete; `resource_operations` does so for
  one resource;
* `stacks` contains what is known about a stack, and `exports` the outputs that other stacks use;
* `resource_types` contains one class for each resource type.
"""

from cdk_triton_local.cloudformation.api import CloudFormationApi
from cdk_triton_local.cloudformation.engine import TemplateEngine
from cdk_triton_local.cloudformation.resource_types import Mailbox, Services

__all__ = ["CloudFormationApi", "Mailbox", "Services", "TemplateEngine"]
