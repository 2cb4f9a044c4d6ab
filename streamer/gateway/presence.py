"""Which models are served now, as their replicas announced themselves in the store."""

from __future__ import annotations

from streamer.errors import CapacityError, NotFound
from streamer.records import ModelInfo
from streamer.store.protocol import Store

__all__ = ["choose_model", "served_models"]

_LOADING_RETRY_S = 5.0


async def served_models(store: Store) -> list[ModelInfo]:
    """Models with a warm encoder, by name; one entry per fingerprint. Safe to cancel."""
    found = {
        presence.model.fingerprint: presence.model
        for presence in await store.present("encoder")
        if presence.model is not None
    }
    return sorted(found.values(), key=lambda model: (model.name, model.fingerprint))


async def choose_model(store: Store, name: str) -> ModelInfo:
    """The served model of that name; the first one for an empty name. Safe to cancel.

    Raises:
        CapacityError: no model is loaded yet.
        NotFound: others are served, not this one.
    """
    served = await served_models(store)
    if not served:
        raise CapacityError("No model is loaded yet; /readyz tells when one is.", _LOADING_RETRY_S)
    for model in served:
        if name in ("", model.name):
            return model
    names = ", ".join(dict.fromkeys(model.name for model in served))
    raise NotFound(f"There is no model named {name!r} here; served: {names}.")
