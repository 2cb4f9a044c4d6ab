"""The models that are served, as their replicas announced them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path

from streamer.errors import NotFound
from streamer.gateway.backend import FromBackend
from streamer.gateway.guard import GuardedRoute, needs
from streamer.gateway.model_schema import (
    ModelDetail,
    ModelLabels,
    ModelList,
    ModelView,
    StageRow,
)
from streamer.gateway.presence import served_models
from streamer.gateway.problems import Problem
from streamer.records import ModelInfo
from streamer.store.protocol import Presence, Store

__all__ = ["router"]

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)

_STAGES: tuple[tuple[str, Literal["encode", "rollout"]], ...] = (
    ("encoder", "encode"),
    ("rollout", "rollout"),
)
"""Kind of replica, and the stage it is there for."""
_NO_HEADS = "This model has no label heads, so events carry no labels."
_HEADS = "Heads of the checkpoint itself; events do not carry their labels yet."
_NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "not served here"}
}
ModelPath = Annotated[str, Path(max_length=256, examples=["tiny"])]


@router.get("", summary="List served models")
@needs("read")
async def list_models(backend: FromBackend) -> ModelList:
    """Empty while replicas still load and warm up."""
    replicas = await _replicas(backend.store)
    models = await served_models(backend.store)
    return ModelList(models=[_view(model, replicas) for model in models])


# Before the next one, whose path would swallow it.
@router.get("/{model:path}/labels", summary="Show a model's labels", responses=_NOT_FOUND)
@needs("read")
async def get_labels(model: ModelPath, backend: FromBackend) -> ModelLabels:
    """What the ids of its label heads mean. No heads, no labels: `detail` says so."""
    served = await _served(backend.store, model)
    heads = {
        head: {str(number): label for number, label in labels.items()}
        for head, labels in served.heads.items()
    }
    return ModelLabels(
        model=served.name,
        fingerprint=served.fingerprint,
        heads=heads,
        detail=_HEADS if heads else _NO_HEADS,
    )


@router.get("/{model:path}", summary="Show a served model", responses=_NOT_FOUND)
@needs("read")
async def get_model(model: ModelPath, backend: FromBackend) -> ModelDetail:
    """With its configuration as loaded, and how long its replicas take."""
    served = await _served(backend.store, model)
    replicas = await _replicas(backend.store)
    return ModelDetail(
        **_view(served, replicas).model_dump(),
        stage_times=_stage_times(served, replicas),
        config=served.config,
    )


async def _served(store: Store, name: str) -> ModelInfo:
    """Raises `NotFound`."""
    for served in await served_models(store):
        if served.name == name:
            return served
    raise NotFound(f"There is no model named {name!r} here; GET /v1/models lists those that are.")


async def _replicas(store: Store) -> list[Presence]:
    """Living replicas of models."""
    return [presence for kind, _ in _STAGES for presence in await store.present(kind)]


def _of(model: ModelInfo, kind: str, replicas: Iterable[Presence]) -> list[Presence]:
    return [
        replica
        for replica in replicas
        if replica.kind == kind
        and replica.model is not None
        and replica.model.fingerprint == model.fingerprint
    ]


def _stage_times(model: ModelInfo, replicas: Iterable[Presence]) -> list[StageRow]:
    replicas = list(replicas)
    rows = []
    for kind, stage in _STAGES:
        for replica in sorted(_of(model, kind, replicas), key=lambda each: each.replica):
            times = replica.stages.get(stage)
            row = StageRow(
                replica=replica.replica,
                stage=stage,
                batches=times.batches if times else 0,
                p50_ms=round(times.p50_ms, 3) if times else None,
                p95_ms=round(times.p95_ms, 3) if times else None,
            )
            rows.append(row)
    return rows


def _view(model: ModelInfo, replicas: Iterable[Presence]) -> ModelView:
    replicas = list(replicas)
    return ModelView(
        name=model.name,
        fingerprint=model.fingerprint,
        trained=model.trained,
        crop=model.crop,
        patch=model.patch,
        tubelet=model.tubelet,
        trained_frames=model.trained_frames,
        dtype=model.dtype,
        heads={head: len(labels) for head, labels in model.heads.items()},
        replicas={kind: len(_of(model, kind, replicas)) for kind, _ in _STAGES},
    )
