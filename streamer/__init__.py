"""streamer: watches live cameras and says what is about to happen.

The six folders ``sources frames clips latents futures events`` are the flow, in order; each
consumes the noun before it and produces its own. ``docs/architecture.md`` tells the rest.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
