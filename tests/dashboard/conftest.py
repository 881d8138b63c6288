"""What the dashboard's tests share: record lines, a store full of plausible traffic, and a served page in a browser."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug.serving import make_server

from changeover import semconv
from changeover.contract import ToolError
from changeover.dashboard.web.app import create_app
from changeover.store.engine import Store, open_store
from changeover.store.flags import set_flag
from changeover.store.ingest import ingest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flask import Flask
    from flask.testing import FlaskClient
    from playwright.sync_api import Browser, Page
    from werkzeug.serving import BaseWSGIServer

NOW = datetime(2025, 3, 14, 12, 0, tzinfo=UTC)
FLIPPED = NOW - timedelta(minutes=75)
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000


def make_record(
    tool: str,
    *,
    session: str | None = "conv-1",
    at: datetime = NOW - timedelta(minutes=5),
    order: int = 0,
    args: str = "{}",
    error: ToolError | None = None,
    legacy: str = "ValueError",
    arm: str = "legacy",
    actor: str = "",
    result: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A record line of one call; the calls of a session follow each other by *order*, in seconds."""
    start = nanoseconds(at) + order * 1_000_000_000
    identity = hashlib.blake2b(
        f"{tool}|{session}|{start}|{args}".encode("utf-8", "replace"), digest_size=24
    ).hexdigest()
    attributes: dict[str, Any] = {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.TOOL_NAME: tool,
        semconv.AGENT_NAME: actor,
        semconv.STAGE: "cutover" if arm == "structured" else "shadow",
        semconv.ARM: arm,
        semconv.SERVED: "structured" if arm == "structured" else "legacy",
        semconv.ARGS_DIGEST: hashlib.blake2b(args.encode("utf-8", "replace"), digest_size=16).hexdigest(),
        semconv.OUTCOME: "error" if error else "ok",
        semconv.SEQUENCE: start,
        semconv.TURN: start,
    }
    if session is not None:
        attributes[semconv.CONVERSATION_ID] = session
    if result is not None:
        attributes[semconv.RESULT_DIGEST] = hashlib.blake2b(result.encode(), digest_size=16).hexdigest()
    if error:
        attributes |= {
            semconv.ERROR_TYPE: error.code,
            semconv.RETRYABLE: error.retryable,
            semconv.NEXT_ACTION: error.next_action.value,
            semconv.CATEGORY: error.category.value,
            semconv.LEGACY_KIND: "exception",
            semconv.LEGACY_PAYLOAD: legacy,
            semconv.STRUCTURED_PAYLOAD: json.dumps(error.envelope(), ensure_ascii=False),
        }
    return {
        "kind": "span",
        "v": 1,
        "trace_id": identity[:32],
        "span_id": identity[32:48],
        "parent_span_id": None,
        "name": f"execute_tool {tool}",
        "start_time_unix_nano": start,
        "end_time_unix_nano": start + 240_000_000,
        "status": "error" if error else "ok",
        "resource": {semconv.SERVICE_NAME: "orders-agent"},
        "attributes": attributes | more,
        "events": [],
    }


ERRORS = {
    "search_orders": (
        ToolError(
            "validation_error",
            "The field 'due_date' must be an ISO 8601 date, for example 2025-03-14.",
            context={"field": "due_date", "received": "next friday", "expected": "ISO 8601 date"},
        ),
        "ValueError: time data 'next friday' does not match format '%Y-%m-%d'",
    ),
    "refund_payment": (
        ToolError("business_rule", "Refunds above 500 EUR need an approval. Ask the user for one."),
        "Error: 422 Unprocessable Entity",
    ),
    "get_inventory": (
        ToolError("upstream_timeout", context={"retry_after_ms": 800}),
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='inventory', port=443): Read timed out.",
    ),
    "send_email": (
        ToolError("permission_denied", "Mail to addresses outside of example.com needs an approval. Ask the user."),
        'Traceback (most recent call last):\n  File "mail.py", line 41, in send\n    raise PermissionError(to)\nPermissionError: x@y.org',
    ),
    "read_calendar": (ToolError("not_found", "No calendar of that name. Use list_calendars to see them."), "Error"),
}
_LOOPING = {
    "search_orders": 0.46,
    "refund_payment": 0.38,
    "get_inventory": 0.22,
    "send_email": 0.3,
    "read_calendar": 0.05,
}
_FAILING = {
    "search_orders": 0.4,
    "refund_payment": 0.35,
    "get_inventory": 0.22,
    "send_email": 0.12,
    "read_calendar": 0.03,
}


def traffic(*, minutes: int = 180, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Three hours of sessions: two tools are cut over on the way, one of them for half of the sessions."""
    dice = random.Random(seed)
    for number in range(minutes * 4):
        at = NOW - timedelta(minutes=minutes) + timedelta(seconds=15 * number + dice.uniform(0, 9))
        tool = dice.choices([*_FAILING, "list_calendars"], weights=[6, 3, 3, 2, 2, 1])[0]
        cut_over = at >= FLIPPED and (tool == "search_orders" or (tool == "refund_payment" and number % 2))
        yield from _session(dice, tool, f"conv-{1000 + number}", at, "structured" if cut_over else "legacy")


def _session(dice: random.Random, tool: str, session: str, at: datetime, arm: str) -> Iterator[dict[str, Any]]:
    looping = _LOOPING.get(tool, 0) * (0.12 if arm == "structured" else 1)
    args, order = f'{{"q":{dice.randrange(10**6)}}}', 0
    if dice.random() < _FAILING.get(tool, 0):
        while True:
            error, legacy = ERRORS[tool]
            yield make_record(tool, session=session, at=at, order=order, args=args, error=error, legacy=legacy, arm=arm)
            order += 2
            if dice.random() > looping:
                break
        args = f'{{"q":{dice.randrange(10**6)},"fixed":true}}'
    yield make_record(tool, session=session, at=at, order=order, args=args, arm=arm, result="[1]")
    if tool == "get_inventory" and dice.random() < 0.1:
        yield make_record(tool, session=session, at=at, order=order + 2, args=args, arm=arm, result="[1]")


@pytest.fixture(scope="session")
def record() -> Callable[..., dict[str, Any]]:
    """Make a record line of one call."""
    return make_record


@pytest.fixture(scope="session")
def _traffic_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traffic") / "traffic.db"
    with open_store(f"sqlite:///{path}") as store:
        ingest(store, traffic())
        for tool, rollout, why in (
            ("search_orders", 100, "shadow looked good for a week"),
            ("refund_payment", 50, "half first"),
        ):
            set_flag(
                store,
                tool,
                stage="cutover",
                rollout=rollout,
                who="mara",
                reason=why,
                clock=lambda: nanoseconds(FLIPPED),
            )
    return path


@pytest.fixture
def busy_store(_traffic_file: Path, tmp_path: Path) -> Iterator[Store]:
    """A store with three hours of plausible traffic and two flips."""
    path = tmp_path / "busy.db"
    shutil.copy(_traffic_file, path)
    with open_store(f"sqlite:///{path}") as store:
        yield store


@pytest.fixture
def empty_store(tmp_path: Path) -> Iterator[Store]:
    """A store without a single call."""
    with open_store(f"sqlite:///{tmp_path / 'empty.db'}") as store:
        yield store


@pytest.fixture
def client_of() -> Callable[..., FlaskClient]:
    """Make a client of the dashboard over a store."""
    return lambda store, **options: app_over(store, **options).test_client()


def app_over(store: Store, **options: Any) -> Flask:
    return create_app(store, **{"clock": lambda: NOW, **options})


@pytest.fixture
def serve_app() -> Iterator[Callable[..., str]]:
    """Serve a store's dashboard on a free port of this machine and give its address."""
    running: list[tuple[BaseWSGIServer, threading.Thread]] = []

    def start(store: Store, **options: Any) -> str:
        server = make_server("127.0.0.1", 0, app_over(store, **options), threaded=True)
        # A request that is still being answered at the end keeps the store in use: it is waited for.
        server.daemon_threads = False  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.port}"

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def find_chromium() -> str | None:
    """Return where a Chromium is: on the path, or the one that Playwright brings."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


# Playwright keeps an event loop running in this thread while it is open, so it is closed before other modules' tests.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium without a window; where none is found the test is skipped, but fails in CI."""
    try:
        from playwright.sync_api import sync_playwright

        path = find_chromium()
    except ImportError:
        path = None
    if path is None:
        reason = "no Chromium found: install one, or run 'playwright install chromium'"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open an address in a fresh browser profile; ``page.complaints`` gathers what its console and its scripts say."""
    contexts = []

    def visit(url: str, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        complaints: list[str] = []
        page.complaints = complaints  # type: ignore[attr-defined]
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.goto(url)
        return page

    yield visit
    for context in contexts:
        context.close()


@pytest.fixture
def take_picture(open_page: Callable[..., Page]) -> Callable[..., Path]:
    """Take a picture of a page as people see it: ``take_picture(url, path, height=…, color_scheme="dark")``."""

    def take(url: str, path: Path, *, width: int = 1360, height: int = 900, **options: Any) -> Path:
        page = open_page(url, viewport={"width": width, "height": height}, device_scale_factor=2, **options)
        page.locator(".uplot canvas").wait_for()
        page.wait_for_load_state("networkidle")
        assert page.complaints == []  # type: ignore[attr-defined]
        page.screenshot(path=path)
        return path

    return take
