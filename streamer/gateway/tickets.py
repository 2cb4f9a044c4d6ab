"""`POST /v1/tickets`: what a browser takes along to a feed instead of a token."""

from __future__ import annotations

from fastapi import APIRouter, Response

from streamer.gateway.guard import FromGate, FromGrant, GuardedRoute, needs
from streamer.gateway.schema import Ticket, TicketRequest

__all__ = ["router"]

router = APIRouter(prefix="/v1/tickets", tags=["access"], route_class=GuardedRoute)


@router.post("", status_code=201, summary="Get a feed ticket")
@needs("read")
async def create_ticket(
    response: Response,
    grant: FromGrant,
    gate: FromGate,
    request: TicketRequest | None = None,
) -> Ticket:
    """Put it into the query of a feed, `?ticket=...`, within its life: browsers can set no header
    there. It opens feeds and nothing else, and only as long as its token is known."""
    response.headers["Cache-Control"] = "no-store"
    ticket, expires_in_s = gate.ticket(grant, None if request is None else request.streams)
    return Ticket(ticket=ticket, expires_in_s=expires_in_s, required=not gate.is_open)
