"""Where: the address from which a request comes.

Anybody can write any header into a request. So X-Forwarded-For counts only if a proxy named by the owner wrote it.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr


@dataclass(frozen=True)
class Reach:
    """How visitors reach this server."""

    behind_proxy: bool = False
    """Whether all requests come through a proxy that appends the client's address to X-Forwarded-For."""
    on_space: bool = False
    """Whether the proxy is a Space's, with further machines between it and this one."""

    @classmethod
    def here(cls, *, behind_proxy: bool = False) -> Reach:
        """The reach that this server was started with."""
        on_space = bool(os.environ.get("SPACE_ID"))
        return cls(behind_proxy or on_space, on_space)

    def origin_of(self, request: gr.Request | None) -> str:
        """The address from which a request comes (for IPv6, its 64-bit network); "" if there is none."""
        try:
            # repeated headers count as one, in order: the proxy's addition comes last
            forwarded = request.headers.getlist("x-forwarded-for") if self.behind_proxy else []
            hops = [hop.strip() for hop in ",".join(forwarded).split(",") if hop.strip()]
            if self.on_space and len(hops) > 1:  # from the right, where the client cannot write anything
                hops = [next((hop for hop in reversed(hops) if _is_public(hop)), hops[-1])]
            return network_of(hops[-1] if hops else request.client.host if request.client else "")
        except AttributeError:
            return ""


def path_within(scope: Mapping[str, Any]) -> str:
    """The path of a request, without the prefix at which a proxy serves the page."""
    return scope["path"].removeprefix(scope.get("root_path", ""))


def trust_no_address() -> None:
    """Keep uvicorn from reading client addresses from headers, because it trusts every client on the same machine."""
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")


def without_proxy(host: str) -> None:
    """Let this process reach its own server directly, whatever proxy the environment names for everything else."""
    for name in ("no_proxy", "NO_PROXY"):
        hosts = [*os.environ.get(name, "").split(","), "localhost", "127.0.0.1", host]
        os.environ[name] = ",".join(dict.fromkeys(filter(None, hosts)))


def network_of(address: str) -> str:
    """An address as limits count it: IPv4 whole, IPv6 by its first 64 bits: a customer may use all addresses within."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0].strip("[]"))
    except ValueError:
        return address[:60]
    if found.version == 6 and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _is_public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip("[]")).is_global
    except ValueError:
        return False


def asked_here(request: gr.Request) -> bool:
    """Whether the page was opened at an address that only this machine can reach."""
    try:
        return is_loopback(request.headers.get("host", "").rsplit(":", 1)[0].strip("[]"))
    except AttributeError:
        return False


def is_loopback(host: str) -> bool:
    """Whether a host's name or address means this machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
