"""What pydantic found wrong with a field, in words for people.

Of the input only the name of a wrong type is repeated.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["explained", "nearest_name"]

_SIMILAR = 0.65
_WORDS = {
    "assertion_error": "this cannot be",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a JSON object",
    "extra_forbidden": "there is no such field",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "json_invalid": "this is not JSON",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "missing": "is required",
    "model_attributes_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "string_pattern_mismatch": "must have the form {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_type": "must be text",
    "too_long": "give at most {max_length}",
    "too_short": "give at least {min_length}",
    "tuple_type": "must be a list",
    "union_tag_invalid": "there is no type {tag}; it is one of {expected_tags}",
    "union_tag_not_found": "a type is missing",
}
_FORMS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$": "write letters, digits, dots, dashes and underscores,"
    " a letter or digit first, at most 64",
    r"^[^\x00-\x1f\x7f]+$": "must not have control characters",
}
"""Patterns of ours that are easier said in words."""


def explained(kind: str, message: str, context: Mapping[str, Any] | None = None) -> str:
    """One problem as half a sentence, to stand after the field's name and a colon.

    Args:
        kind: pydantic's `type` of the error.
        message: its `msg`, for kinds without words of ours.
        context: its `ctx`, if it has one.
    """
    known = {name: str(value)[:200] for name, value in (context or {}).items()}
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind == "string_pattern_mismatch" and known.get("pattern", "") in _FORMS:
        return _FORMS[known["pattern"]]
    if kind == "string_too_short" and known.get("min_length") == "1":
        return "must not be empty"
    try:
        return _WORDS[kind].format_map(known)
    except KeyError:  # another kind, or pydantic says less than it did
        return message


def nearest_name(name: str, known: Collection[str]) -> str:
    """``; did you mean ...?``, or nothing when no known name is like it."""
    close = difflib.get_close_matches(name[:80], known, n=1, cutoff=_SIMILAR)
    return f"; did you mean {close[0]}?" if close else ""
