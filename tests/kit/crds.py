"""Reduces CRDs to the parts that the chart's test needs.

    python -m tests.kit.crds NAME=FILE… > tests/data/crds.json

Names, types, enums and required fields stay, and unknown fields are refused. Descriptions are removed, and so are pod
templates, which the test checks as pods. Subtrees in which the chart sets nothing allow any value.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

KEPT = ("type", "required", "enum", "minimum", "maximum", "minItems")
ANYTHING = {
    "affinity", "autoscalerOptions", "backup", "certificates", "env", "envFrom", "externalClusters", "headService",
    "historyServerOptions", "import", "managed", "monitoring", "networkPolicy", "pg_basebackup", "plugins", "probes",
    "projectedVolumeTemplate", "pvcTemplate", "recovery", "replica", "replicationSlots", "seccompProfile",
    "serveService", "serviceAccountTemplate", "tablespaces", "tlsOptions", "topologySpreadConstraints", "walStorage",
}  # fmt: skip


def prune(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    if "containers" in properties.get("spec", {}).get("properties", {}):
        return {"type": "object"}
    pruned = {key: schema[key] for key in KEPT if key in schema}
    if properties:
        pruned["properties"] = {name: {} if name in ANYTHING else prune(one) for name, one in properties.items()}
        pruned["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            pruned[key] = prune(schema[key])
    return pruned


def spec_of(file: str) -> dict[str, Any]:
    versions = yaml.load(Path(file).read_text(), Loader=yaml.CSafeLoader)["spec"]["versions"]
    [served] = [one["schema"]["openAPIV3Schema"] for one in versions if one["name"] == "v1"]
    return prune(served["properties"]["spec"])


if __name__ == "__main__":
    schemas = {name: json.dumps(spec_of(file)) for name, file in (word.split("=", 1) for word in sys.argv[1:])}
    print("{", ",\n".join(f"{json.dumps(name)}: {schema}" for name, schema in schemas.items()), "}", sep="\n")
