"""The artifact store of a model: the given one, or one that its stack gets of its own."""

from __future__ import annotations

from aws_cdk import Annotations, Stage
from constructs import Construct, IConstruct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.references import protects_nothing
from cdk_triton.hosting.naming.stacks import are_deployed_together, stack_of
from cdk_triton.hosting.store.bucket import keep_when_creation_fails
from cdk_triton.hosting.store.imported import ImportedArtifactStore
from cdk_triton.hosting.store.interface import ITritonArtifactStore
from cdk_triton.hosting.store.store import DEFAULT_STORE_ID, TritonArtifactStore

__all__ = ["store_of"]

WEAK_WARNING = "cdk-triton:WeakStoreReference"
IN_STACK_WARNING = "cdk-triton:ArtifactStoreInStack"


def store_of(scope: Construct, store: ITritonArtifactStore | None) -> ITritonArtifactStore:
    """The given store, or the default store of the scope's stack, made on first use with a warning.

    Raises:
        ConfigurationError: the store is in another account, region or stage.
    """
    if isinstance(store, ImportedArtifactStore):
        raise ConfigurationError(
            f"{scope.node.path} got an imported artifact store, but SageMaker reads a model only from a store of the "
            "model's own account and region: pass a TritonArtifactStore(…, promotes_from=…) that promotes from the "
            "imported store"
        )
    stack = stack_of(scope)
    if isinstance(store, TritonArtifactStore):
        _require_same_stage(scope, store)
    if store is not None:
        if isinstance(store, TritonArtifactStore) and are_deployed_together(stack_of(store), stack):
            keep_when_creation_fails(store.bucket)
        elif isinstance(store, TritonArtifactStore) and protects_nothing(stack):
            Annotations.of(store).add_warning_v2(
                WEAK_WARNING,
                f"other stacks use the artifact store {path_of(store)} by weak references, so CloudFormation allows "
                f"you to delete the stack {path_of(stack_of(store))}, or to replace the store, while endpoints need "
                "the store. Call CrossStackReferences.of(store).produce(ReferenceStrength.STRONG), or give the stack "
                "termination_protection=True, then acknowledge this",
            )
        return store
    found: IConstruct | None = stack.node.try_find_child(DEFAULT_STORE_ID)
    if isinstance(found, TritonArtifactStore):
        return found
    own = TritonArtifactStore(stack, DEFAULT_STORE_ID)
    keep_when_creation_fails(own.bucket)
    Annotations.of(own).add_warning_v2(
        IN_STACK_WARNING,
        f"{path_of(stack)} got an artifact store of its own, because no store= was given. That is good for a first "
        "try, but if the first deployment fails, the store's bucket stays and belongs to no stack. Put a "
        "TritonArtifactStore into a stack of its own and pass it as store=",
    )
    return own


def _require_same_stage(scope: Construct, store: TritonArtifactStore) -> None:
    """Reject the store of another stage, because the CDK allows no reference between stages."""
    theirs, own = (Stage.of(each) for each in (store, scope))
    if theirs is not None and own is not None and theirs.node.path != own.node.path:
        raise ConfigurationError(
            f"{path_of(scope)} uses the artifact store {path_of(store)} of another stage, but the CDK rejects "
            "references between stages: create the store in this stage, or give the other store an export_prefix and "
            "import that store here with TritonArtifactStore.from_exports"
        )
