"""What a scrape says, as a mapping."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

__all__ = ["read_samples"]


def read_samples(text: str) -> dict[str, float]:
    """``name`` or ``name{label=value,...}``, labels in order, -> value."""
    return {
        _key(sample.name, sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _key(name: str, labels: dict[str, str]) -> str:
    inside = ",".join(f"{label}={value}" for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name
