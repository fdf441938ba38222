"""CT246: repository agents, which change a model's files before the server reads them."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import configured
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity

_MANAGER = "src/model_repository_manager/model_repository_manager.cc"


@rule("CT246", Severity.ERROR, "model_repository_agents does not name an agent", source=core(_MANAGER, 1655, 1668))
def no_agent(context: CheckContext) -> Iterator[Problem]:
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
    for model, config in configured(context):
        if not config.HasField("model_repository_agents"):
            continue
        agents = config.model_repository_agents.agents
        if not agents:
            yield Problem(
                model.config_path,
                f"model_repository_agents of {model.name!r} has no agent, so the server would crash (SIGSEGV)",
                "remove model_repository_agents, or name an agent",
                "model_repository_agents",
            )
        for index, agent in enumerate(agents):
            if not agent.name:
                yield Problem(
                    model.config_path,
                    f"agent {index} has no name, so the server would not load {model.name!r}: unable to find "
                    "'libtritonrepoagent_.so' for repo agent ''",
                    "write the name of the agent, such as checksum, or remove the agent",
                    f"model_repository_agents.agents[{index}].name",
                )
