"""Text from a client -> a message of the protocol, or a refusal that can be answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from streamer.errors import ProtocolViolation
from streamer.events.explained import explained, nearest_name
from streamer.events.schema import ClientMessage, client_message

__all__ = ["Refusal", "explain_problems", "parse_client_message"]

_MAX_ID = 128
_MAX_PROBLEMS = 3
_MESSAGES: tuple[type[BaseModel], ...] = get_args(get_args(ClientMessage)[0])
_FIELDS = {get_args(each.model_fields["type"].annotation)[0]: each for each in _MESSAGES}
"""Type of a client message -> its class."""


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
    problems = error.errors(include_url=False, include_input=False)
    told = [_told(problem) for problem in problems[:_MAX_PROBLEMS]]
    more = len(problems) - len(told)
    sentence = "; ".join(told) + (f"; and {more} more" if more > 0 else "")
    return sentence if sentence.endswith("?") else sentence + "."


def _told(problem: Any) -> str:
    place = [str(part)[:40] for part in problem["loc"]]
    words = explained(problem["type"], problem["msg"], problem.get("ctx"))
    if problem["type"] == "extra_forbidden" and place[0] in _FIELDS:
        words += nearest_name(place[-1], list(_FIELDS[place[0]].model_fields))
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        place = ["type"]
    return f"{'.'.join(place) or 'message'}: {words[:300]}"
