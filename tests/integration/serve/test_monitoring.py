"""Alerts and dashboards use existing metrics, labels and columns, and each alert has a runbook entry."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import ray
import yaml

from serve.telemetry import Metrics

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy/prometheus/raydex.rules.yaml"
ALERTS = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
DASHBOARDS = [json.loads(path.read_text()) for path in sorted((ROOT / "deploy/grafana").glob("*.json"))]
TARGETS = [target for board in DASHBOARDS for panel in board["panels"] for target in panel["targets"]]
EXPRESSIONS = [alert["expr"] for alert in ALERTS] + [target["expr"] for target in TARGETS if "expr" in target]
# Ray's own declarations of its metrics.
OF_RAY = ["serve/_private", "dashboard/modules/reporter"]


def exported() -> dict[str, set[str]]:
    """Return the metrics of a service as Prometheus names them, with their labels."""
    found = {}
    held = vars(Metrics()).values()
    for metric in [one for group in held for one in (group.values() if isinstance(group, dict) else [group])]:
        suffix = "_bucket" if metric.__class__.__name__ == "Histogram" else ""
        found[f"ray_{metric.info['name']}{suffix}"] = {*metric.info["tag_keys"], *["le"] * bool(suffix)}
    return found


def test_panels_and_rules_use_only_exported_metrics_and_labels() -> None:
    ours, named = exported(), set()
    for expression in EXPRESSIONS:
        labels = set(re.findall(r"(\w+)=~?\"", expression))
        for by in re.findall(r"by \(([\w, ]*)\)", expression):
            labels |= set(by.split(", "))
        metrics = set(re.findall(r"\bray_\w+", expression))
        named |= metrics
        own = [ours[metric] for metric in metrics if metric in ours]
        assert not own or labels <= set.union(*own), expression
    folder = Path(ray.__file__).parent
    sources = "".join(path.read_text() for place in OF_RAY for path in (folder / place).rglob("*.py"))
    assert {name for name in named - set(ours) if f'"{name.removeprefix("ray_")}"' not in sources} == set()
    assert set(ours) <= named, "a metric that no panel shows"


def test_every_index_query_runs_on_the_tables(database_url: str) -> None:
    queries = [target["rawSql"] for target in TARGETS if "rawSql" in target]
    assert len(queries) >= 8
    with psycopg.connect(database_url) as connection:
        for query in queries:
            connection.execute(re.sub(r"\$__timeFilter\(([\w.]+)\)", r"\1 > now() - interval '1 day'", query))


def test_every_alert_has_a_summary_and_a_runbook_entry() -> None:
    page = (ROOT / "docs/operating.md").read_text()
    for alert in ALERTS:
        name = alert["alert"]
        assert alert["annotations"]["runbook"] == f"docs/operating.md#{name.lower()}"
        assert alert["labels"]["severity"] in ("page", "ticket")
        entry = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        assert entry and "```" in entry[1], f"docs/operating.md has no entry for {name} with a first command"


def test_panels_have_titles_positions_and_a_selectable_data_source() -> None:
    for board in DASHBOARDS:
        variables = {f"${{{variable['name']}}}" for variable in board["templating"]["list"]}
        places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
        assert len({panel["id"] for panel in board["panels"]}) == len(set(places)) == len(places)
        assert all(panel["title"] and panel["datasource"]["uid"] in variables for panel in board["panels"])


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool (Debian: apt-get install prometheus)")
def test_prometheus_alerts_the_right_receiver() -> None:
    done: Any = subprocess.run(
        ["promtool", "test", "rules", ROOT / "tests/data/alerts.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
