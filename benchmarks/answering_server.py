"""Serves the application twice: at /ingress with every step in it, at /deployment with a deployment a step.

answering.py starts it with its settings as JSON; the environment chooses the proxy. Serves until stdin ends.
"""

import json
import sys

from ray import serve

from serve.__main__ import local_ray
from serve.app import build
from serve.settings import Settings

PLACEMENTS = ("ingress", "deployment")


def main() -> None:
    port, settings = int(sys.argv[1]), Settings(**json.loads(sys.argv[2]))
    with local_ray():
        serve.start(http_options={"host": "127.0.0.1", "port": port}, proxy_location="HeadOnly")
        for placement in PLACEMENTS:
            placed = settings.model_copy(update={"retriever_placement": placement, "agents_placement": placement})
            serve.run(build(placed), name=placement, route_prefix=f"/{placement}")
        print("serving", flush=True)
        sys.stdin.read()
        serve.shutdown()


if __name__ == "__main__":
    main()
