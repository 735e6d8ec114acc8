"""Packages the Helm chart, publishes it on this machine, and pulls it again; rehearse.py runs it with Helm's library.

python chart.py CHART VERSION FOLDER URL REGISTRY: FOLDER is served at URL, REGISTRY is an oci:// address or "".
"""

import sys
from pathlib import Path

import helm_python as helm


def main(chart: str, version: str, folder: str, url: str, registry: str) -> str:
    """Return the published and the pulled version."""
    archive = Path(helm.package(chart, destination=folder))
    helm.repo_index_generate(folder, base_url=url)
    pulled = Path(folder) / "pulled"
    pulled.mkdir()
    helm.pull("raydex", repo_url=url, version=version, destination=pulled)
    places = [f"{archive.name} from the index at {url}"]
    if registry:
        helm.push(archive, registry, plain_http=True)
        (pulled / archive.name).unlink()
        helm.pull(f"{registry}/raydex", version=version, destination=pulled, plain_http=True)
        places.append(f"from {registry}")
    with helm.Chart.load(str(pulled / archive.name)) as loaded:
        said = {"version": loaded.version, "appVersion": loaded.metadata["appVersion"]}
    if set(said.values()) != {version}:
        sys.exit(f"the chart says {said}")
    return f"pulled {' and '.join(places)}: {said}"


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
