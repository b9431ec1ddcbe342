"""Limits and scopes that both the help of a command and the code behind it name; quick to import."""

import ipaddress
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

__all__ = [
    "INTERVALS",
    "LOOPBACK",
    "MODEL_KINDS",
    "SCOPES",
    "TASKS",
    "ConnectionLimits",
    "Network",
    "ScopeName",
]

ScopeName: TypeAlias = Literal["read", "learn", "admin"]
SCOPES: tuple[ScopeName, ...] = get_args(ScopeName)
"""What a token may do; each may do what those before it may."""

TASKS = ("regression", "counts", "classification")
"""What the target of a table may be."""
INTERVALS = ("model", "adaptive")
"""What intervals can be: those of the model, or those that are tracked as targets arrive."""
MODEL_KINDS = ("perceptron", "network", "auto")
"""What may learn a table; "auto" chooses."""

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOPBACK: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))


@dataclass(frozen=True)
class ConnectionLimits:
    """What a client may do before we know who it is; the defaults are those of the command.

    Parameters
    ----------
    max_header : bytes of a request's first line and headers together
    header_timeout : seconds from the first byte of a request to the end of its headers
    body_timeout : seconds from there to the end of its body
    idle_timeout : seconds without a request, or without reading an answer
    max_connections : connections at the same time
    max_connections_per_peer : of these, from one address; of IPv6 from one network of 64 bits
    proxies : addresses from which as many connections may come as there may be in all
    """

    max_header: int = 2**15
    header_timeout: float = 10.0
    body_timeout: float = 60.0
    idle_timeout: float = 30.0
    max_connections: int = 900  # below 1,024, the number of files that a process may usually open
    max_connections_per_peer: int = 100
    proxies: tuple[Network, ...] = LOOPBACK
