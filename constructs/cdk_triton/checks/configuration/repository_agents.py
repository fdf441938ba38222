"""CT246: repository agents, which change a model's files before the server reads them."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity

_MANAGER = "src/model_repository_manager/model_repository_manager.cc"


@model_rule(
    "CT246", Severity.ERROR, "model_repository_agents does not name an agent", source=core(_MANAGER, 1655, 1668)
)
def no_agent(each: ConfiguredModel) -> Iterator[Problem]:
    """`model_repository_agents` has an empty list of agents, or an agent in the list does not have a name.

    The server reads the model's location from the last agent of the list, so an empty list crashes the server. The
    server does not load a model whose agent does not have a name.

    Example:
        # model/config.pbtxt
        backend: "python"
        model_repository_agents { }

    Instead:
        # model/config.pbtxt
        backend: "python"

    Limits:
        The rule does not check which agents an image has.
    """
    if not each.config.HasField("model_repository_agents"):
        return
    agents = each.config.model_repository_agents.agents
    if not agents:
        yield each.problem(
            "model_repository_agents",
            f"model_repository_agents of {each.name!r} has no agent, so the server would crash (SIGSEGV)",
            "remove model_repository_agents, or name an agent",
        )
    for agent in each.parts("model_repository_agents.agents", agents):
        if not agent.message.name:
            yield agent.unloadable(
                "name",
                f"agent {agent.index} has no name",
                "unable to find 'libtritonrepoagent_.so' for repo agent ''",
                "write the name of the agent, such as checksum, or remove the agent",
            )
