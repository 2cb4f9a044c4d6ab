"""Checks of what is installed. Each imports what it looks at itself: any of it may be broken."""

from __future__ import annotations

import os
import platform
import socket
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import urlsplit

from streamer.doctor.finding import Finding, fail, ok, warn
from streamer.settings import Settings

__all__ = ["DECODERS", "check_ffmpeg", "check_python", "check_ray", "check_torch", "find_decoders"]

_OLDEST = (3, 11)
_CONNECT_S = 1.0
_REINSTALL = "Install again: pip install -c constraints.txt -e ."
_BROKEN = (ImportError, OSError)
"""A missing package, or one whose shared libraries do not load."""

DECODERS = {
    "H.264": ("h264",),
    "HEVC": ("hevc",),
    "VP9": ("vp9", "libvpx-vp9"),
    # FFmpeg's own av1 decoder needs a GPU that decodes it.
    "AV1": ("libdav1d", "libaom-av1"),
    "MJPEG": ("mjpeg",),
}
"""Codec -> FFmpeg's decoders of it, any of which will do."""
_NEEDED = frozenset({"H.264", "HEVC"})
"""What cameras send."""


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Is Python new enough?"""
    found = f"{'.'.join(map(str, version))} on {platform.system()} {platform.machine()}"
    if version < _OLDEST:
        return fail("python", found, fix="Make the environment with Python 3.11 or later.")
    return ok("python", found)


def check_torch(settings: Settings, *, has_gpu: bool | None = None) -> Finding:
    """Does torch load, and does it see the device that the settings name?

    Args:
        has_gpu: whether the machine has an NVIDIA GPU; None: look.
    """
    try:
        import torch
    except _BROKEN as error:
        return fail("torch", f"cannot be imported: {_first_line(error)}", fix=_REINSTALL)
    has_gpu = Path("/dev/nvidia0").exists() if has_gpu is None else has_gpu
    device = settings.model.device
    if torch.cuda.is_available():
        return ok("torch", f"{torch.__version__}, {torch.cuda.get_device_name(0)}")
    found = f"{torch.__version__}, CPU only"
    if device.startswith("cuda"):
        fix = "Set model.device to auto or cpu, or install a torch for this machine's driver."
        return fail("torch", f"{found}, but model.device is {device}", fix=fix)
    if has_gpu:
        fix = "Install the torch build for this driver's CUDA version (nvidia-smi shows it)."
        return warn("torch", f"{found}, although there is a GPU", fix=fix)
    return ok("torch", found)


def find_decoders() -> set[str]:
    """Codecs of `DECODERS` that PyAV's FFmpeg decodes. Raises as importing av does."""
    from av.codec import Codec
    from av.codec.codec import UnknownCodecError

    found = set()
    for codec, names in DECODERS.items():
        for name in names:
            try:
                Codec(name, "r")
            except UnknownCodecError:
                continue
            found.add(codec)
    return found


def check_ffmpeg(find: Callable[[], Collection[str]] = find_decoders) -> Finding:
    """Can the FFmpeg inside PyAV decode what cameras send?"""
    try:
        found = find()
    except _BROKEN as error:
        return fail("ffmpeg", f"PyAV cannot be imported: {_first_line(error)}", fix=_REINSTALL)
    missing = [codec for codec in DECODERS if codec not in found]
    if not missing:
        return ok("ffmpeg", f"decodes {', '.join(DECODERS)}")
    fact = f"does not decode {', '.join(missing)}"
    fix = "Use the wheels of PyAV (pip install --force-reinstall --only-binary av av)."
    judge = fail if _NEEDED & set(missing) else warn
    return judge("ffmpeg", fact, fix=fix)


def check_ray(settings: Settings, *, temp: Path | None = None) -> Finding:
    """Does Ray load, and is the cluster there that is to be joined?

    Args:
        temp: where Ray notes the cluster of this machine; None: the system's folder.
    """
    try:
        import ray
    except _BROKEN as error:
        fix = f"{_REINSTALL} Without Ray there is `streamer serve --runtime local`."
        return warn("ray", f"cannot be imported: {_first_line(error)}", fix=fix)
    wanted = settings.ray.address or os.environ.get("RAY_ADDRESS", "")
    here = _address_of_machine(temp or Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir())))
    if wanted in ("", "local"):
        beside = f"; another one runs at {here}, which is left alone" if here else ""
        return ok("ray", f"{ray.__version__}, `streamer serve` starts its own{beside}")
    if "://" in wanted:
        fix = "Give host:port of its GCS; a ray:// client address cannot serve."
        return fail("ray", f"{ray.__version__}, but {wanted} is no address to join at", fix=fix)
    address = here if wanted == "auto" else wanted
    if address and _answers(address):
        return ok("ray", f"{ray.__version__}, joins the cluster at {address}")
    fix = "Start it (ray start --head), correct ray.address or RAY_ADDRESS, or leave both empty."
    return fail("ray", f"{ray.__version__}, but no cluster answers at {wanted}", fix=fix)


def _address_of_machine(temp: Path) -> str:
    """Of a Ray that runs here; empty without one."""
    try:
        address = (temp / "ray" / "ray_current_cluster").read_text().strip()
    except OSError:
        return ""
    return address if _answers(address) else ""


def _answers(address: str) -> bool:
    try:
        parts = urlsplit(f"ray://{address}")
        place = (parts.hostname or "", parts.port or 6379)
        with socket.create_connection(place, timeout=_CONNECT_S):
            return True
    except (OSError, ValueError):
        return False


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
