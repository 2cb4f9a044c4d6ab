"""The models that are served, as their replicas announced them."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path

from streamer.errors import NotFound
from streamer.gateway.backend import FromBackend
from streamer.gateway.guard import GuardedRoute, needs
from streamer.gateway.presence import served_models
from streamer.gateway.problems import Problem
from streamer.gateway.schema import ModelDetail, ModelList, ModelView
from streamer.records import ModelInfo
from streamer.store.protocol import Store

__all__ = ["router"]

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("", summary="List served models")
@needs("read")
async def list_models(backend: FromBackend) -> ModelList:
    """Empty while replicas still load and warm up."""
    replicas = await _replicas(backend.store)
    models = await served_models(backend.store)
    return ModelList(models=[_view(model, replicas) for model in models])


@router.get(
    "/{model:path}",
    summary="Show a served model",
    responses={404: {"model": Problem, "description": "not served here"}},
)
@needs("read")
async def get_model(
    model: Annotated[str, Path(max_length=256, examples=["tiny"])], backend: FromBackend
) -> ModelDetail:
    """With its configuration as loaded."""
    for served in await served_models(backend.store):
        if served.name == model:
            view = _view(served, await _replicas(backend.store))
            return ModelDetail(**view.model_dump(), config=served.config)
    raise NotFound(f"There is no model named {model!r} here; GET /v1/models lists those that are.")


async def _replicas(store: Store) -> Counter[tuple[str, str]]:
    """(fingerprint, kind) -> living replicas."""
    return Counter(
        [
            (presence.model.fingerprint, kind)
            for kind in ("encoder", "rollout")
            for presence in await store.present(kind)
            if presence.model is not None
        ]
    )


def _view(model: ModelInfo, replicas: Counter[tuple[str, str]]) -> ModelView:
    return ModelView(
        name=model.name,
        fingerprint=model.fingerprint,
        trained=model.trained,
        crop=model.crop,
        patch=model.patch,
        tubelet=model.tubelet,
        trained_frames=model.trained_frames,
        dtype=model.dtype,
        replicas={kind: replicas[model.fingerprint, kind] for kind in ("encoder", "rollout")},
    )
