"""Which network addresses a source may have. Pure: names are resolved elsewhere."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

__all__ = ["Address", "Network", "effective", "parse_networks", "why_denied"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The only part of IPv6 in which public hosts live. Outside of it lie old ways to write IPv4, local
# NAT64 and site-local addresses that `is_global` takes for public.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, GCP, Azure, OpenStack
        "169.254.170.2",  # AWS task credentials
        "169.254.170.23",  # AWS pod identity
        "fd00:ec2::254",  # AWS over IPv6
        "fd00:ec2::23",
        "fd20:ce::254",  # GCP over IPv6
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure host agent: a public address
        "192.0.0.192",  # Oracle
    )
)


def parse_networks(cidrs: Iterable[str]) -> tuple[Network, ...]:
    """``("10.1.0.0/16", "192.168.1.20")`` -> networks; a lone address is a network of one.

    Raises:
        ValueError: not a CIDR, or one with host bits set.
    """
    return tuple(ipaddress.ip_network(text) for text in cidrs)


def effective(address: Address) -> Address:
    """The address really contacted: IPv4 inside IPv6 (mapped, 6to4, NAT64) is unwrapped."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    wrapped = address.ipv4_mapped or address.sixtofour
    if wrapped is None and address in _NAT64:
        wrapped = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return wrapped if wrapped is not None else address


def why_denied(address: Address, allowed: Iterable[Network]) -> str:
    """Empty when a source may live there, else the kind of address that it is.

    Metadata, multicast and unspecified addresses are never allowed. Public ones always are; every
    other kind only inside a network of `allowed`.
    """
    address = effective(address)
    if address in _METADATA:
        return "a cloud metadata address"
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_multicast:
        return "a multicast address"
    if any(address in network for network in allowed):
        return ""
    return _kind(address)


def _kind(address: Address) -> str:
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    is_unicast = address.version == 4 or address in _GLOBAL_UNICAST
    return "" if address.is_global and is_unicast else "a private or reserved address"
