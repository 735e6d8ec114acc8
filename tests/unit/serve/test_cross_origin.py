"""Pages that can read replies, and headers of every reply: CORS, security headers, frames."""

import pytest
from kit.guarded import BLOG, DOCS, EVIL, OWN, SECRET, SITE, GuardedStore, bearer, client, guarded, open_session
from starlette.testclient import TestClient

from pipelines.store import BadKey
from pipelines.store.keys import normal_origin
from serve.guard.origin import is_foreign
from serve.settings import Settings

ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
QUESTION = {"question": "How do I load csv files?"}


@pytest.fixture(scope="module")
def asking() -> TestClient:
    return client(guarded(GuardedStore()))


@pytest.mark.parametrize(
    "path", ["/session", "/query", "/query/stream", "/search", "/feedback", "/clicks", "/answers/x/share"]
)
def test_preflight_of_a_bound_origin_is_answered_on_reader_routes(asking: TestClient, path: str) -> None:
    reply = asking.options(path, headers={"Origin": DOCS, **ASKS})
    assert reply.status_code == 204 and reply.headers["Access-Control-Allow-Origin"] == DOCS
    assert reply.headers["Vary"] == "Origin" and "Access-Control-Allow-Credentials" not in reply.headers
    assert {"authorization", "content-type", "x-raydex-renew"} <= {
        name.strip().lower() for name in reply.headers["Access-Control-Allow-Headers"].split(",")
    }


@pytest.mark.parametrize(
    "origin", [EVIL, "null", DOCS + ".evil.test", "http://docs.test", DOCS + ":8443", DOCS.upper()]
)
@pytest.mark.parametrize("path", ["/session", "/query"])
def test_preflight_of_any_other_origin_is_refused(asking: TestClient, path: str, origin: str) -> None:
    reply = asking.options(path, headers={"Origin": origin, **ASKS})
    assert reply.status_code in (401, 403) and "Access-Control-Allow-Origin" not in reply.headers


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/docs", "/admin/status", "/openapi.json"])
def test_preflight_of_a_bound_origin_is_refused_on_other_routes(asking: TestClient, path: str) -> None:
    reply = asking.options(path, headers={"Origin": DOCS, **ASKS})
    assert reply.status_code in (401, 403) and "Access-Control-Allow-Origin" not in reply.headers


OPENAI_JS = (
    "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,"
    "x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout"
)


@pytest.mark.parametrize("names", [
    OPENAI_JS,
    "authorization,content-type,user-agent", "api-key,content-type,openai-organization,openai-project",
    "content-type,http-referer,x-title", "idempotency-key",
])  # fmt: skip
def test_client_can_send_its_own_headers_to_v1_from_a_listed_origin(names: str) -> None:
    asks = {"Origin": BLOG, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": names}
    app = client(guarded(GuardedStore(), cors_origins=[BLOG]))
    reply = app.options("/v1/chat/completions", headers=asks)
    assert reply.status_code == 204 and reply.headers["Access-Control-Allow-Origin"] == BLOG
    allowed = {name.strip().lower() for name in reply.headers["Access-Control-Allow-Headers"].split(",")}
    assert {*names.split(","), "authorization", "content-type"} <= allowed
    assert "Access-Control-Request-Headers" in reply.headers["Vary"]
    elsewhere = app.options("/query", headers=asks).headers["Access-Control-Allow-Headers"]
    assert "stainless" not in elsewhere and "api-key" not in elsewhere.lower()
    assert app.options("/v1/models", headers={**asks, "Origin": EVIL}).status_code in (401, 403)


@pytest.mark.parametrize("names", [
    "x-forwarded-for", "Forwarded", "X-Real-IP", "x-forwarded-prefix", "cookie", "host", "a b", "x\x7f", "é", "*",
    "x" * 101, ",".join(f"x-{n}" for n in range(1_000)),
])  # fmt: skip
def test_proxy_headers_and_invalid_names_are_not_allowed_on_v1(names: str) -> None:
    asks = {"Origin": BLOG, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": names}
    sent = [(name, value.encode("utf-8")) for name, value in asks.items()]
    reply = client(guarded(GuardedStore(), cors_origins=[BLOG])).options("/v1/models", headers=sent)
    assert reply.status_code == 204
    allowed = [name.strip().lower() for name in reply.headers["Access-Control-Allow-Headers"].split(",")]
    assert names.lower() not in allowed and len(allowed) < 60 and all(name.isascii() for name in allowed)


def test_ignored_fields_header_is_exposed() -> None:
    reply = client(guarded(GuardedStore(), cors_origins=[BLOG])).get("/health", headers={"Origin": BLOG})
    assert {"X-Raydex-Ignored", "X-Request-ID", "Retry-After"} <= set(
        reply.headers["Access-Control-Expose-Headers"].split(", ")
    )


def test_errors_and_limits_are_readable_too() -> None:
    asking = client(guarded(GuardedStore(), address_rate=1))
    page = bearer(open_session(asking, SITE, DOCS), DOCS)
    replies = [asking.post("/query", json=body, headers=page) for body in ({"question": ""}, QUESTION)]
    replies += [asking.get("/answers/x", headers=page), asking.post("/search", headers=bearer("rds_no", DOCS))]
    assert [reply.status_code for reply in replies] == [422, 429, 404, 401]
    for reply in replies:
        assert reply.headers["Access-Control-Allow-Origin"] == DOCS and "Origin" in reply.headers["Vary"]
        assert "Retry-After" in reply.headers["Access-Control-Expose-Headers"]


def test_bound_origin_stays_readable_while_the_database_is_unreachable(monkeypatch):
    asking = client(guarded(store := GuardedStore()))
    assert asking.options("/query", headers={"Origin": BLOG, **ASKS}).status_code == 204
    store.away = True
    monkeypatch.setattr("serve.guard.cors.CACHE_S", 0.0)
    refused = asking.post("/session", headers=bearer(SITE, BLOG))
    assert refused.status_code == 503 and refused.headers["Access-Control-Allow-Origin"] == BLOG


# ---------------------------------------------------------------------------------------------- requesting page


@pytest.mark.parametrize(
    ("headers", "foreign"),
    [
        ({}, False),
        ({"sec-fetch-site": "none"}, False),  # typed into the address bar
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, False),  # from a form, with the referrer withheld
        ({"sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "cross-site", "origin": OWN}, True),
        ({"sec-fetch-site": "nonsense"}, True),
        ({"origin": OWN}, False),  # a browser that does not send the other header, or a host without TLS
        ({"origin": "http://ask.test"}, False),
        ({"origin": "https://ask.test:8443"}, True),
        ({"origin": "https://ask.test.evil.test"}, True),
        ({"origin": "null"}, True),
        ({"origin": EVIL}, True),
        ({"origin": "https://blog.test", "sec-fetch-site": "cross-site"}, False),  # listed by the operator
    ],
)
def test_page_of_another_origin_is_foreign(headers: dict[str, str], foreign: bool) -> None:
    sent = [(name.encode(), value.encode()) for name, value in {"host": "ask.test", **headers}.items()]
    assert is_foreign({"type": "http", "headers": sent}, {BLOG}) is foreign


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("https://Docs.Example.com/", "https://docs.example.com"),
        ("https://docs.example.com:443", "https://docs.example.com"),
        ("http://localhost:8000", "http://localhost:8000"),
        (" https://dócs.example ", "https://xn--dcs-gna.example"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_origin_is_written_as_browsers_send_it(written: str, sent: str) -> None:
    assert normal_origin(written) == sent


@pytest.mark.parametrize(
    "written",
    ["", "*", "null", "docs.example.com", "https://docs.example.com/en", "https://*.example.com", "ftp://a.b",
     "https://me@docs.example.com", "https://docs.example.com?x", "https://docs.example.com:99999", "https://a b"],
)  # fmt: skip
def test_invalid_origin_is_refused_with_its_text(written: str) -> None:
    with pytest.raises(BadKey, match="write it as the browser shows it"):
        normal_origin(written)


# ---------------------------------------------------------------------------------------------- every reply


@pytest.mark.parametrize("path", ["/", "/health", "/docs", "/nothing", "/search", "/admin/status", "/v1/models"])
def test_every_reply_has_security_headers(asking: TestClient, path: str) -> None:
    headers = asking.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
    policy = headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY" and policy.count("frame-ancestors 'none'") == 1
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy


def test_trailing_slash_redirects_relative_to_the_path_of_a_proxy(asking: TestClient) -> None:
    moved = asking.get("/docs/?a=b%2Fc", headers=bearer(SECRET))
    assert (moved.status_code, moved.headers["Location"]) == (307, "../docs?a=b%2Fc")


@pytest.mark.parametrize(
    ("setting", "policy", "old"),
    [
        ([], "frame-ancestors 'none'", "DENY"),
        (["self"], "frame-ancestors 'self'", "SAMEORIGIN"),
        (["self", "https://Docs.Example.com/"], "frame-ancestors 'self' https://docs.example.com", None),
    ],
)
def test_framing_of_the_page_is_a_setting(setting: list[str], policy: str, old: str | None) -> None:
    ancestors = Settings(frame_ancestors=setting).frame_ancestors
    headers = client(guarded(GuardedStore(), frame_ancestors=ancestors)).get("/").headers
    assert headers["Content-Security-Policy"].endswith(f"; {policy}") and headers.get("X-Frame-Options") == old


@pytest.mark.parametrize("setting", ["frame_ancestors", "cors_origins"])
@pytest.mark.parametrize("written", ["docs.example.com", "https://a.b; script-src *", "https://a.b/\r\nX: y"])
def test_invalid_origin_in_the_settings_is_refused(setting, written):
    with pytest.raises(ValueError, match="write it as the browser shows it"):
        Settings(**{setting: [written]})
