"""Redaction: no secret survives, at any limit; everything else stays as it is."""

from __future__ import annotations

import json
import string

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from changeover.redact import MASK, redact_json, redact_text

ALPHABET = string.ascii_letters + string.digits
BODY = st.text(ALPHABET, min_size=24, max_size=48).filter(lambda text: any(c in string.digits for c in text))

SHAPES = {
    "openai": "sk-proj-{}",
    "stripe": "sk_live_{}",
    "anthropic": "sk-ant-api03-{}",
    "github": "ghp_{}",
    "github-fine": "github_pat_{}",
    "gitlab": "glpat-{}",
    "slack": "xoxb-123-{}",
    "google": "AIzaSy{}",
    "jwt": "eyJhbGciOi{0}.eyJzdWIi{0}.{0}",
    "hugging-face": "hf_{}",
    "npm": "npm_{}",
}
PLACES = {
    "query-key": "403 url=https://h.example/p?key={}&x=1",
    "query-token": "https://h.example/p?a=1&access_token={}#top",
    "query-sig": "https://h.example/c/blob?sv=2024&sig={}",
    "query-amz": "GET https://b.s3.example/k?X-Amz-Credential=***&X-Amz-Signature={}&X-Amz-Date=20250314",
    "userinfo": "connection to postgres://app:{}@db.example:5432/orders failed",
    "user-only": "git clone https://{}@git.example/repo.git",
    "bearer": "request sent with Authorization: Bearer {} and refused",
    "bearer-alone": "Bearer {} is not valid",
    "basic": "header Authorization: Basic {}= was wrong",
    "assignment": "started with DB_PASSWORD={} on host 7",
    "kwargs": "connect(host='db', password='{}', port=5432)",
    "colon": "secret: {}",
    "json": '{{"user": "a", "api_key": "{}", "n": 1}}',
    "json-in-json": r'{{"body": "{{\"client_secret\": \"{}\"}}"}}',
    "python-repr": "{{'headers': {{'x-api-key': '{}'}}}}",
    "bytes-repr": "token=b'{}'",
    "cookie": "Set-Cookie: session={}; Path=/; HttpOnly",
    "option": "tool --api-key {} --verbose failed",
    "xml": "<Password>{}</Password>",
    "camel": "config.clientSecret = {}",
    "encoded-equals": "https://h.example/?next=/p%3Ftoken%3D{}",
    "connection-string": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=x",
    "list": "passwords=['{}', 'b']",
}


def _survivors(secret: str, text: str) -> list[str]:
    """Return the heads of *secret*, longer than three characters, that *text* still holds."""
    return [secret[:n] for n in range(4, len(secret) + 1) if secret[:n] in text]


@given(
    body=BODY, place=st.sampled_from(sorted(PLACES)), limit=st.none() | st.integers(0, 400), after=st.integers(0, 200)
)
def test_br_04_09_no_head_of_a_named_secret_survives_a_cut_at_any_limit(body, place, limit, after):
    secret = f"Zq9{body}"
    text = PLACES[place].format(secret) + " x" * after

    assert _survivors(secret, redact_text(text, limit)) == []


@given(
    body=BODY, shape=st.sampled_from(sorted(SHAPES)), before=st.integers(0, 60), limit=st.none() | st.integers(0, 200)
)
def test_br_04_05_no_secret_of_a_known_shape_survives_wherever_it_stands(body, shape, before, limit):
    secret = SHAPES[shape].format(body)
    text = f"{'word ' * before}Incorrect API key provided: {secret}. Ask again."

    assert _survivors(secret, redact_text(text, limit)) == []


def test_br_04_09_every_limit_of_the_reported_message():
    secret = "Kf83hsj29dkslw02kdjsk39dksl20dkslw93kdls"
    text = f"403 url=https://h/p?api_key={secret}&x={'y' * 200}"

    assert [limit for limit in range(300) if _survivors(secret, redact_text(text, limit))] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("400 for url: https://api.x/y?key=AIzaFAKE123&q=1", "400 for url: https://api.x/y?key=***&q=1"),
        (
            "https://api.x/y?q=1&token=abc&access_token=abc&sig=abc",
            "https://api.x/y?q=1&token=***&access_token=***&sig=***",
        ),
        ("?X-Amz-Signature=abc123&X-Amz-Expires=60", "?X-Amz-Signature=***&X-Amz-Expires=60"),
        ("Incorrect API key provided: sk-live-FAKEFAKE", "Incorrect API key provided: ***"),
        ("AWS said AKIAIOSFODNN7EXAMPLE is unknown", "AWS said *** is unknown"),
        ("postgres://app:p@ss@db/orders", "postgres://***@db/orders"),
        ("Authorization: Bearer abc.def-123 was refused", "Authorization: *** was refused"),
        ("{'password': 'a\\'b', \"token\": \"x\"}", "{'password': '***', \"token\": \"***\"}"),
        ("password=hunter2, user=bob", "password=***, user=bob"),
        ("password: hunter2", "password: ***"),
        ("Cookie: a=b; c=d\nAccept: */*", "Cookie: ***\nAccept: */*"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----\nrest",
            "***\nrest",
        ),
        ("cut off: -----BEGIN PRIVATE KEY-----\nMIIEow", "cut off: ***"),
        ("https://hooks.slack.com/services/T000/B000/XXXX", "https://***"),
    ],
)
def test_what_is_masked_and_what_stays_beside_it(text, shown):
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Order AB-1234567 of 2025-03-14 was not found.",
        "550e8400-e29b-41d4-a716-446655440000",
        "sha 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "Basic authentication is required",
        "the bearer of bad news",
        "password: must not be empty",
        "token: expected an identifier",
        "unexpected token ')' at line 3",
        "KeyError: 'due_date'",
        "key: value",
        "sort(key=len) failed",
        "https://api.example.com/v1/orders?page=2&next_token=abc#key",
        "mail a.person@example.com about task-force-alpha-team-seven",
        "password=None, token=null, secret=''",
        "max_tokens=4096, tokens: 17",
        "C:\\Users\\me\\secretary\\notes.txt",
        "ratio 3:1 at 12:30:45, x == y",
        "naïve café 😀 \u200d done",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert redact_text(text) == text
    assert redact_json({"text": text}) == {"text": text}


PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "password",
                "token",
                "key",
                "cookie",
                "Bearer ",
                "Basic ",
                "sk-",
                "AKIA",
                "eyJ",
                "://",
                "@",
                "=",
                ":",
                '"',
                "'",
            ),
            *("\\", " ", "\n", "***", "…", "[", "]", "{", "}", "<", ">", "&", "?", "--", "abc", "A1B2C3D4E5", ",", ";"),
            *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "é", "😀", "\ud800", "%3D", "None", "must"),
            *("authorization", "…[cut: 7 characters]", "(", ")", "|", "/", "#", "_"),
        ]
    ),
    max_size=30,
).map("".join)


@given(PIECES | st.text())
@example('password="***')
def test_redacting_again_changes_nothing(text):
    once = redact_text(text)

    assert redact_text(once) == once


@given(PIECES | st.text(), st.integers(0, 120))
def test_redacting_and_cutting_again_changes_nothing(text, limit):
    once = redact_text(text, limit)

    assert redact_text(once, limit) == once


@given(PIECES | st.text(), st.integers(-1, 120))
def test_a_cut_holds_its_limit_says_so_and_can_be_encoded(text, limit):
    shown = redact_text(text, limit)

    assert len(shown) <= max(limit, 0)
    assert shown == shown.encode().decode()
    assert shown == redact_text(text) or limit <= 0 or "…" in shown


def test_a_cut_tells_how_long_the_text_was():
    assert redact_text("x" * 31_000, 50) == f"{'x' * 26}…[cut: 31000 characters]"


def test_a_cut_keeps_accents_with_their_letters_and_joined_emoji_whole():
    family = "\U0001f469\u200d\U0001f467"
    accented = redact_text("e\u0301" * 100, 40)
    joined = redact_text(family * 100, 40)

    assert accented.split("…")[0] == "e\u0301" * (len(accented.split("…")[0]) // 2)
    assert joined.split("…")[0] == family * (len(joined.split("…")[0]) // 3)


def test_far_longer_text_than_the_limit_is_redacted_as_far_as_it_is_shown():
    secret = "Kf83hsj29dkslw02kdjsk39dksl20dkslw93kdls"
    text = f"-----BEGIN PRIVATE KEY-----{'A' * 70_000}-----END PRIVATE KEY----- token={secret} " * 3

    shown = redact_text(text, 200)

    assert _survivors(secret, shown) == []
    assert "AAAA" not in shown


HOSTILE = [
    "a", "://", "://a", "password", "password=", 'password="', "sk-", "-sk-a", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ",
    "<", "<token", "token\\", "eyJ", "eyJaaaaaaaaaa.", "bearer ", "--", "--token ", "token={", 'token=["', "cookie: a",
    "&key=a", "token%3d", 'token:\\"', "token='…", "token:", "@", "SG.", "xoxb-", "\ud800", "\u0301", "AKIA", "token =",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_megabyte_written_to_be_slow_is_done_in_time(piece):
    """Bounded by the test's own time-out: with quadratic matching a single one of these would take minutes."""
    text = (piece * (1_000_000 // len(piece)))[:1_000_000]

    redact_text(f"token {text}")
    assert len(redact_text(text, 100)) <= 100


# JSON

KEYS = st.sampled_from(["a", "password", "api_key", "name", "value", "x"]) | st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | PIECES,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": "a", "user": "b"}, {"password": "***", "user": "b"}),
        (
            {"token": 123, "cookie": True, "secret": None, "api_key": ""},
            {"token": "***", "cookie": True, "secret": None, "api_key": ""},
        ),
        ({"credentials": {"user": "a", "list": ["b", 1]}}, {"credentials": {"user": "***", "list": ["***", "***"]}}),
        (
            {"headers": [{"name": "Authorization", "value": "abc"}]},
            {"headers": [{"name": "Authorization", "value": "***"}]},
        ),
        (
            {"X-Api-Key": "a", "accessToken": "b", "AWS_SECRET_ACCESS_KEY": "c"},
            {"X-Api-Key": "***", "accessToken": "***", "AWS_SECRET_ACCESS_KEY": "***"},
        ),
        ({"nextToken": "a", "key": "b", "tokens": 7}, {"nextToken": "a", "key": "b", "tokens": 7}),
        (["see https://u:p@h/", ("a",)], ["see https://***@h/", ["a"]]),
        ({"AKIAIOSFODNN7EXAMPLE": 1, "AKIAIOSFODNN7EXAMPLF": 2}, {"***": 1, "***~": 2}),
    ],
)
def test_secrets_in_json_go_by_the_name_of_their_field_and_by_shape(value, shown):
    assert redact_json(value) == shown


def test_br_06_13_what_is_no_json_still_serializes():
    class Hostile(dict):
        def items(self):
            raise RuntimeError

    loop: list[object] = ["password="]
    loop.append(loop)
    value = {
        "n": float("nan"),
        "big": 2**70,
        "o": object(),
        "b": b"x",
        "s": {1},
        5: "k",
        "h": Hostile(a=1),
        "t": "\ud800",
        "loop": loop,
    }

    shown = redact_json(value)

    assert orjson.loads(orjson.dumps(shown)) == shown
    assert (shown["n"], shown["big"], shown["o"], shown["s"], shown["t"]) == (
        None,
        "0x400000000000000000",
        "<builtins.object>",
        [1],
        "\ufffd",
    )


@given(JSON, st.none() | st.integers(2, 400))
def test_redacted_json_is_json_within_its_limit(value, limit):
    shown = redact_json(value, limit)
    text = orjson.dumps(shown).decode()

    assert json.loads(text) == shown
    assert limit is None or len(text) <= limit


@given(JSON)
def test_redacting_json_again_changes_nothing(value):
    once = redact_json(value)

    assert redact_json(once) == once


@given(body=BODY, limit=st.none() | st.integers(2, 300), pad=st.integers(0, 60))
def test_no_head_of_a_secret_survives_in_json_at_any_limit(body, limit, pad):
    secret = f"Zq9{body}"
    value = {
        "pad": "x" * pad,
        "auth": {"deep": [secret]},
        "url": f"https://h/?sig={secret}",
        "body": f'{{"pwd": "{secret}"}}',
    }

    assert _survivors(secret, orjson.dumps(redact_json(value, limit)).decode()) == []


def test_a_shared_structure_that_unfolds_without_end_is_cut():
    value: list[object] = ["token=abc"]
    for _ in range(60):
        value = [value, value]

    assert MASK in orjson.dumps(redact_json(value)).decode()
