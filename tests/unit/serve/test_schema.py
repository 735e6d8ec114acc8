"""Valid and invalid requests generated from the service's OpenAPI schema cause no server error."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from kit.api import FakeEngine, FakeStore

from serve.routes import create_app


@pytest.mark.parametrize("examples", [2, pytest.param(15, marks=pytest.mark.exhaustive)])
def test_no_request_from_the_schema_is_a_server_error(examples: int) -> None:
    # Imported here, because the import costs each worker seconds, and only one of them runs this test.
    import schemathesis
    from schemathesis.checks import not_a_server_error

    store = FakeStore()
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json",
        create_app(FakeEngine(store), store),  # type: ignore[arg-type]
        config=schemathesis.Config.from_dict({"generation": {"mode": "all", "allow-x00": True}}),
    )

    tried: list[schemathesis.Case] = []

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def answer(case: schemathesis.Case) -> None:
        tried.append(case)
        case.call_and_validate(checks=[not_a_server_error])

    for operation in (found.ok() for found in schema.get_all_operations()):
        for mode in schemathesis.GenerationMode:
            with suppress(Unsatisfiable):  # a request without parameters cannot be invalid
                given(case=operation.as_strategy(generation_mode=mode))(answer)()
    assert {"/query", "/search", "/feedback", "/v1/chat/completions"} <= {case.operation.path for case in tried}
