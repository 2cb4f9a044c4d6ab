"""The table of codes in the contract is what the code says.

After a wanted change: ``python tests/contract/test_contract_error_codes.py`` prints it anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer import errors
from streamer.gateway import upload_errors
from streamer.gateway.problems import HTTP_CODES

pytestmark = pytest.mark.contract

CONTRACT = Path(__file__).parents[2] / "docs" / "contract.md"
HEAD = "| `code` | HTTP | try again | meaning |"
OTHERS = {
    "internal": "A bug of ours: the server's log has the reason under the request id.",
    "forbidden": "A token without the scope that this needs, a web page of another site, or a"
    " strange Host.",
    "bad_request": "The request is none.",
    "method_not_allowed": "The path does not know this method.",
    "body_too_large": "The body is larger than this path takes.",
    "unsupported_media_type": "The body is of another kind than this path takes.",
    "upgrade_required": "This is a WebSocket.",
    "invalid_request": "A field of the request cannot be; `errors` has all of them.",
}


def _rows() -> list[str]:
    ours = {
        cls.code: (
            cls.http_status,
            cls.retryable,
            OTHERS.get(cls.code) or str(cls.__doc__).partition("\n\n")[0],
        )
        for module in (errors, upload_errors)
        for cls in (getattr(module, name) for name in module.__all__)
    }
    codes = {code: status for status, code in HTTP_CODES.items()} | {"invalid_request": 422}
    theirs = {
        code: (status, False, OTHERS[code]) for code, status in codes.items() if code not in ours
    }
    return [
        f"| `{code}` | {status} | {'yes' if retryable else 'no'} | {' '.join(meaning.split())} |"
        for code, (status, retryable, meaning) in sorted((ours | theirs).items())
    ]


def test_the_contract_lists_every_code():
    lines = CONTRACT.read_text().splitlines()
    start = lines.index(HEAD) + 2
    found = lines[start : lines.index("", start)]
    assert found == _rows(), f"run: python {__file__}"


if __name__ == "__main__":
    print("\n".join([HEAD, "|---|---|---|---|", *_rows()]))
