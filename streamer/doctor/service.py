"""Checks of what the settings name: access, store, model."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import replace
from pathlib import Path

from streamer.doctor.finding import Finding, fail, failed, ok, warn
from streamer.errors import StreamerError
from streamer.gateway.auth import check_exposure
from streamer.gateway.tokens import read_tokens
from streamer.settings import Settings
from streamer.store.open import check_store
from streamer.store.redis_address import shown_address

__all__ = ["check_access", "check_model", "check_store_answers", "running_version"]

_ASK_S = 2.0
_TRAIN = "Give a trained checkpoint: --model FOLDER, or a hub id (streamer models ls)."


def check_access(settings: Settings) -> Finding:
    """Can strangers call, and is the tokens file good?"""
    file, server = settings.gateway.tokens_file, settings.server
    try:
        tokens = len(read_tokens(Path(file))) if file else 0
        check_exposure(server.host, has_tokens=bool(file), allow_anonymous=server.allow_anonymous)
    except StreamerError as error:
        return failed("access", error, fix="Correct gateway.tokens_file.")
    who = f"tokens: {tokens}" if file else "no tokens"
    return ok("access", f"{who}, bound to {server.host}")


def check_store_answers(settings: Settings) -> Finding:
    """Does the Redis answer, and does it keep what it is given?"""
    config = settings.store
    if not config.url:
        return ok("store", "embedded; streams and events end with the service")
    try:
        asyncio.run(check_store(replace(config, start_s=0.0)))
    except StreamerError as error:
        return failed("store", error, fix="Start it, correct store.url, or leave that empty.")
    return ok("store", f"{shown_address(config.url)} answers and keeps everything")


def check_model(settings: Settings) -> Finding:
    """Are all files there, undamaged and of one model?"""
    name, revision = settings.model.name, settings.model.revision
    try:
        # Needs torch, which may be what is broken here.
        from streamer.models.config import PRESETS
        from streamer.models.hub import is_hub_id
        from streamer.models.vjepa2 import load_model
    except (ImportError, OSError):
        return fail("model", "not looked at without torch", fix="Mend torch first.")
    if name in PRESETS:
        fact = f"{name} is a preset: random weights, its numbers mean nothing"
        return warn("model", fact, fix=_TRAIN)
    is_remote = not Path(name).exists() and is_hub_id(name)
    folder = _cached(name, revision) if is_remote else Path(name)
    if folder is None:
        fix = "Nothing, if this machine may reach huggingface.co: it is fetched at the start."
        return warn("model", f"{name} is not in the local cache", fix=fix)
    try:
        damaged = _damaged(folder)
        if damaged:
            fix = f"Delete {damaged} and fetch the model again."
            return fail("model", f"{damaged.name} of {name} is damaged (sha256 differs)", fix=fix)
        model = load_model(str(folder))
    except StreamerError as error:
        return failed("model", error, fix="Correct model.name, or fetch the model again.")
    fact = f"{name} loads, fingerprint {model.fingerprint}"
    return ok("model", fact) if model.trained else warn("model", f"{fact}, untrained", fix=_TRAIN)


def running_version(url: str) -> str | None:
    """Version of the streamer that answers at this base URL, if one does."""
    import httpx2

    try:
        # Past any proxy of the environment: what is asked is an address of this machine.
        answer = httpx2.get(f"{url}/version", timeout=_ASK_S, trust_env=False).json()
        return str(answer["version"]) if "runtime" in answer else None
    except (httpx2.HTTPError, ValueError, TypeError, KeyError):
        return None


def _cached(hub_id: str, revision: str | None) -> Path | None:
    """Folder of a model in the local cache of the hub, without asking the hub."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_id, "config.json", revision=revision)
    return Path(found).parent if isinstance(found, str) else None


def _damaged(folder: Path) -> Path | None:
    """A file of the hub's cache that does not hash to its name there."""
    for file in sorted(folder.glob("*.safetensors")):
        blob = file.resolve()
        if re.fullmatch(r"[0-9a-f]{64}", blob.name):
            with blob.open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != blob.name:
                    return file
    return None
