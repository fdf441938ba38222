"""Reads moto's VPCs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["reached_services"]


def reached_services(account: str, region: str, subnets: Sequence[str]) -> frozenset[str] | None:
    """The services for which functions in any of these subnets have a VPC endpoint.

    Lambda guide, "Giving Lambda functions access to resources in an Amazon VPC": "Connecting a function to a public
    subnet doesn't give it internet access". So a route to an internet gateway does not count.

    Returns:
        The names as in the name of a VPC endpoint's service, such as `sagemaker.api`. None for all services, because no
        subnet lacks a route to the internet, as far as is known: an imported subnet has no routes here.
    """
    from moto.ec2.models import ec2_backends

    if not subnets:
        return None
    backend = ec2_backends[account][region]
    known = [
        backend.subnets[zone][each] for each in subnets for zone in backend.subnets if each in backend.subnets[zone]
    ]
    closed = [table for table in (_table(backend, subnet) for subnet in known) if not _leads_out(table)]
    if not closed:
        return None
    return frozenset(
        endpoint.service_name.rpartition(f".{region}.")[2]
        for endpoint in list(backend.vpc_end_points.values())
        if endpoint.vpc_id == closed[0].vpc_id
        and endpoint.state == "available"  # moto keeps those that were deleted
        and (
            endpoint.private_dns_enabled
            if endpoint.vpc_endpoint_type == "Interface"
            else all(table.id in endpoint.route_table_ids for table in closed)
        )
    )


def _table(backend: Any, subnet: Any) -> Any:
    """The route table of a subnet, or else the main one of the VPC."""
    tables = [table for table in list(backend.route_tables.values()) if table.vpc_id == subnet.vpc_id]
    own = [table for table in tables if any(each.get("SubnetId") == subnet.id for each in table.associations)]
    (table,) = own or [table for table in tables if table.main_association_id is not None]
    return table


def _leads_out(table: Any) -> bool:
    everywhere = [route for route in table.routes if route.destination_cidr_block == "0.0.0.0/0"]
    return any(not (route.gateway_id or "").startswith("igw-") for route in everywhere)
