"""Text from a client -> a message of the protocol, or a refusal that can be answered."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import from_json

from streamer.errors import ProtocolViolation
from streamer.events.schema import ClientMessage, client_message

__all__ = ["Refusal", "explain_problems", "parse_client_message"]

_MAX_ID = 128
_MAX_PROBLEMS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A JSON object that is no message of the protocol: answer with `error`, go on."""

    problem: str
    in_reply_to: str | None


def parse_client_message(text: str, *, max_bytes: int) -> ClientMessage | Refusal:
    """Validate one message.

    Raises:
        ProtocolViolation: too long or not a JSON object; whoever sends that speaks something else.
    """
    if len(text) > max_bytes or len(text.encode(errors="replace")) > max_bytes:
        raise ProtocolViolation(f"A message may have {max_bytes} bytes; a longer one came.")
    fields = _parse_object(text)
    try:
        return client_message.validate_python(fields)
    except ValidationError as error:
        return Refusal(problem=explain_problems(error), in_reply_to=_usable_id(fields.get("id")))


def _parse_object(text: str) -> dict[str, object]:
    try:
        fields = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise ProtocolViolation("Messages are JSON objects; this was not JSON.") from error
    if not isinstance(fields, dict):
        raise ProtocolViolation("Messages are JSON objects; this was another JSON value.")
    return fields


def _usable_id(name: object) -> str | None:
    return name if isinstance(name, str) and len(name) <= _MAX_ID else None


def explain_problems(error: ValidationError) -> str:
    """The first problems as one sentence, without repeating what the client sent."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = []
    for problem in problems[:_MAX_PROBLEMS]:
        place = ".".join(str(part)[:40] for part in problem["loc"]) or "message"
        told.append(f"{place}: {problem['msg'][:200]}")
    more = len(problems) - len(told)
    return "; ".join(told) + (f"; and {more} more." if more > 0 else ".")
