"""Deploys the service anew into the Ray that it runs on: ``redeploy.py GCS_ADDRESS``.

Settings come from the environment, as for `streamer serve`. Prints ``deployed`` when every replica
is of the new kind and warm.
"""

from __future__ import annotations

import sys

from deployments.environment import prepare
from streamer.settings import load_settings


def main(address: str) -> None:
    prepare(on_loopback=True)  # before ray is imported
    from deployments.cluster import joined_ray
    from deployments.deploy import deploy

    with joined_ray(address):
        deploy(load_settings())
    print("deployed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
