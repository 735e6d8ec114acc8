"""Creates the RayJob of a night: `python night.py RAYJOB.json FOLDER`.

FOLDER has a service account's token.

The Job of this pod owns the RayJob. When the CronJob deletes an old Job, the RayJob and the rest of its cluster go too.
"""

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

manifest, account = Path(sys.argv[1]), Path(sys.argv[2])
owner = {"apiVersion": "batch/v1", "kind": "Job", "name": os.environ["JOB_NAME"], "uid": os.environ["JOB_UID"]}
body = json.loads(manifest.read_text())
# Not the Job's own name, because KubeRay gives the RayJob's name to the Job that submits the night.
body["metadata"] |= {"name": (name := f"{owner['name']}-run"), "ownerReferences": [owner]}
request = urllib.request.Request(
    f"https://kubernetes.default.svc/apis/ray.io/v1/namespaces/{(account / 'namespace').read_text()}/rayjobs",
    json.dumps(body).encode(),
    {"Authorization": f"Bearer {(account / 'token').read_text()}", "Content-Type": "application/json"},
)
try:
    urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(account / "ca.crt"))).close()
except urllib.error.HTTPError as error:  # its body has Kubernetes' reason
    sys.exit(f"the RayJob {name} was not created: {error}: {error.read().decode()}")
print(f"created the RayJob {name}; its output: kubectl logs -f job/{name}")
