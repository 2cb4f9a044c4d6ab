"""Store records -> what the API shows of a stream. Nothing leaves here with credentials in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from streamer.clock import format_utc
from streamer.events.parts import ModelRef
from streamer.gateway.gathering import asked_of_each
from streamer.gateway.presence import served_models
from streamer.gateway.schema import ClockCounts, Counts, Drops, Rates, SamplingView, StreamView
from streamer.gateway.standing import standing
from streamer.records import ModelInfo, StreamRecord
from streamer.sources.redact import redact, redact_text
from streamer.store.protocol import Store

__all__ = ["LOG_END", "stream_view", "stream_views"]

_Part = TypeVar("_Part", Rates, Drops, Counts, ClockCounts)
LOG_END = 10**15 - 1
"""Later than any seq: a read after it returns no events, only where the log stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Surroundings:
    """What all streams of one answer share."""

    models: Sequence[ModelInfo]
    owners: Mapping[str, str]


async def stream_view(store: Store, record: StreamRecord) -> StreamView:
    """Safe to cancel."""
    return (await stream_views(store, [record]))[0]


async def stream_views(store: Store, records: Sequence[StreamRecord]) -> list[StreamView]:
    """Safe to cancel."""
    shared = _Surroundings(models=await served_models(store), owners=await store.lease_holders())
    return await asked_of_each(records, lambda record: _view(store, record, shared))


async def _view(store: Store, record: StreamRecord, shared: _Surroundings) -> StreamView:
    log = await store.read(record.stream, after_seq=LOG_END, limit=1)
    owner = shared.owners.get(record.stream)
    status = await standing(store, record, owner=owner, log=log)
    spec = record.spec
    return StreamView(
        id=record.stream,
        source=redact(spec.source),
        model=_model_ref(spec.model, shared.models),
        mode=spec.mode,
        horizons_s=list(spec.horizons_s),
        sampling=SamplingView(
            frames=spec.sampling.frames, fps=spec.sampling.fps, stride_s=spec.sampling.stride_s
        ),
        retain_s=spec.retain_s,
        desired=record.desired,
        outcome=record.outcome,
        state=str(status["state"]),
        reason=str(status.get("reason", "")),
        detail=redact_text(str(status.get("detail", ""))),
        retry_in_s=status.get("retry_in_s"),
        have=status.get("have"),
        need=status.get("need"),
        owner=owner,
        generation=status.get("generation"),
        rates=_part(Rates, status),
        drops=_part(Drops, status),
        counts=_part(Counts, status),
        lag_s=status.get("lag_s"),
        clock=status.get("clock"),
        clock_why=status.get("clock_why"),
        clock_offset_s=status.get("clock_offset_s"),
        clock_drift_ppm=status.get("clock_drift_ppm"),
        clock_report_age_s=status.get("clock_report_age_s"),
        clock_counts=_part(ClockCounts, status),
        epoch=log.epoch,
        head_seq=log.head_seq,
        first_seq=log.first_seq,
        revision=record.revision,
        applied_revision=status.get("revision") if owner is not None else None,
        created=format_utc(record.created_ns),
        feed=f"/v1/streams/{record.stream}/feed",
    )


def _part(kind: type[_Part], status: Mapping[str, Any]) -> _Part | None:
    """The fields of `kind` out of a flat status; None when the session did not say them all."""
    values = {name: status.get(name) for name in kind.model_fields}
    return None if None in values.values() else kind.model_validate(values)


def _model_ref(name: str, served: Sequence[ModelInfo]) -> ModelRef | None:
    for model in served:
        if name in ("", model.name):
            return ModelRef(name=model.name, fingerprint=model.fingerprint, trained=model.trained)
    return None
