"""Requests made from the service's own OpenAPI schema, valid and broken ones: none is a server error."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from kit.api import FakeEngine, FakeStore
from schemathesis.checks import not_a_server_error

from serve.routes import create_app

store = FakeStore()
config = schemathesis.Config.from_dict({"generation": {"mode": "all", "allow-x00": True}})
schema = schemathesis.openapi.from_asgi(
    "/openapi.json",
    create_app(FakeEngine(store), store),  # type: ignore[arg-type]
    config=config,
)


@schema.parametrize()
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_nothing_that_the_schema_can_think_of_is_a_server_error(case: Any) -> None:
    case.call_and_validate(checks=[not_a_server_error])
