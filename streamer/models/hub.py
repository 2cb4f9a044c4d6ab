"""Models from the Hugging Face hub, as folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamer.errors import CheckpointError, NotFound

__all__ = ["fetch", "is_hub_id"]

_FILES = ["config.json", "model*.safetensors", "model.safetensors.index.json"]


def is_hub_id(name: str) -> bool:
    """Whether it looks like `owner/name` (and not like a path)."""
    return re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name) is not None


def fetch(hub_id: str, *, revision: str | None = None) -> Path:
    """Download (or find in the local cache) config and weights; gives their folder.

    Raises:
        NotFound: the hub has no such model or revision, or keeps it from us.
        CheckpointError: the hub cannot be reached and the cache does not hold it.
    """
    from huggingface_hub import snapshot_download  # 0.3 s, only needed here

    with _translated(hub_id):
        return Path(snapshot_download(hub_id, revision=revision, allow_patterns=_FILES))


@contextmanager
def _translated(hub_id: str) -> Iterator[None]:
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise NotFound(
            f"The Hugging Face hub shows us no model {hub_id} in this revision: wrong name, or "
            "private and without HF_TOKEN."
        ) from error
    except (errors.LocalEntryNotFoundError, httpx2.HTTPError, OSError) as error:
        raise CheckpointError(
            f"Cannot fetch {hub_id} from the Hugging Face hub and the local cache does not hold "
            "it. Go online once, or download it elsewhere and give the folder."
        ) from error
