"""Answers about models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

__all__ = ["ModelDetail", "ModelLabels", "ModelList", "ModelView", "StageRow"]


class ModelView(BaseModel):
    """A model that replicas of this service have loaded and warmed up."""

    name: str
    fingerprint: str
    trained: bool = Field(description="false: random weights, the numbers mean nothing")
    crop: int = Field(description="pixels per side")
    patch: int
    tubelet: int = Field(description="frames per token in time")
    trained_frames: int
    dtype: str
    heads: dict[str, int] = Field(default_factory=dict, description="label head -> classes")
    replicas: dict[str, int] = Field(description="kind -> replicas that serve it")


class StageRow(BaseModel):
    """How long one stage takes in one replica, over its newest batches."""

    replica: str
    stage: Literal["encode", "rollout"]
    batches: int = Field(description="looked at, at most 100; 0 before the first")
    p50_ms: float | None
    p95_ms: float | None


class ModelDetail(ModelView):
    stage_times: list[StageRow] = Field(
        default_factory=list, description="per replica, as each said of itself a moment ago"
    )
    config: dict[str, Any] = Field(description="config.json as loaded")


class ModelList(BaseModel):
    models: list[ModelView]


class ModelLabels(BaseModel):
    """What the ids of a model's label heads mean."""

    model: str
    fingerprint: str
    heads: dict[str, dict[str, str]] = Field(description="head -> id -> label")
    detail: str = Field(description="what these heads are, or why there are none")
