"""What this agent can do for its panel, in the words that the panel places work by; told with every report."""

from fleet.agent.policy import Policy
from fleet.agent.state import Identity


def capabilities(policy: Policy, identity: Identity) -> tuple[str, ...]:
    """Return the words. `container` is what looks usable: the replicas' report says, once there are some, what is.

    Cheap: no container engine is asked and no client of one imported.
    """
    from fleet.agent.engines.docker_socket import is_likely_usable

    able = {
        "nvml": True,
        "host": True,
        "process": policy.allow_processes,
        "container": policy.allow_containers and is_likely_usable(policy.container_socket),
        "gateway": identity.is_gateway,
    }
    return tuple(name for name, is_able in able.items() if is_able)
