"""What providers say when they refuse, and what is made of it."""

import json

import pytest

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ConfigError, ContextOverflow, ModelError, ModelRejected, ModelUnavailable
from crow.model import catalog
from crow.model.http import retry_after
from crow.model.provider_errors import ErrorDetails, from_status, in_stream, read
from tests.model.asking import ask
from tests.support.provider import Cut, Provider

NGINX = (
    b"<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>\r\n"
    b"<hr><center>nginx/1.25</center>\r\n</body>\r\n</html>\r\n"
)
SECRET = "sk-proj-0123456789abcdef"


@pytest.mark.parametrize(
    ("body", "said", "name"),
    [
        ({"error": {"message": "No.", "type": "invalid_request_error", "code": None}}, "No.", "invalid_request_error"),
        ({"error": {"message": "No.", "type": "t", "code": "insufficient_quota"}}, "No.", "insufficient_quota"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "No."}}, "No.", "overloaded_error"),
        ({"error": "No."}, "No.", ""),
        ({"message": "No.", "type": "BadRequestError", "code": 400}, "No.", "BadRequestError"),
        ({"detail": "No."}, "No.", ""),
        ({"detail": [{"loc": ["body"], "msg": "No."}]}, "No.", ""),
        ([{"error": {"message": "No.", "code": 400}}], "No.", ""),
        ({"odd": 1}, '{"odd":1}', ""),
        ({"error": {}}, '{"error":{}}', ""),
        ({"error": {"code": 7}}, '{"code":7}', ""),
        ({}, "", ""),
        (None, "", ""),
        ([], "", ""),
        (17, "17", ""),
    ],
)
def test_complaints_in_json(body: object, said: str, name: str) -> None:
    complaint = read(json.dumps(body).encode(), str)
    assert (complaint.said, complaint.name) == (said, name)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html><style>p {}</style><body><h1>502</h1>\n<p>Bad   gateway</p></body>", "502 Bad gateway"),
        (NGINX, "404 Not Found nginx/1.25"),
        (b"<html><head><title>Only a title</title></head><body></body></html>", "Only a title"),
        (b"plain words", "plain words"),
        (b"\xff\xfe broken", "\ufffd\ufffd broken"),
        (b"x" * 1000, "x" * 299 + "…"),
        (b'{"message": "' + b"y" * 1000 + b'"}', "y" * 299 + "…"),
        (b"[" * 100_000, "[" * 299 + "…"),
        (b"", ""),
    ],
)
def test_complaints_in_other_words(body: bytes, said: str) -> None:
    assert read(body, str).said == said


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000."),
        (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (400, "the request exceeds the available context size. try increasing the context size"),
        (400, "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it"),
        (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
        (400, "prompt too long; exceeded max context length by 5 tokens"),
        (400, "the input length exceeds the context length"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (500, "The number of tokens to keep from the initial prompt is greater than the context length."),
        (413, "request_too_large"),
        (413, ""),
    ],
)
def test_a_conversation_that_no_longer_fits(status: int, said: str) -> None:
    error = from_status("house", status, said)
    assert type(error) is ContextOverflow
    assert "/compact" in error.remedy


def test_a_status_that_is_said_again_is_said_once() -> None:
    assert str(from_status("house", 404, "404 Not Found nginx/1.25")).startswith(
        "house answered 404 (Not Found): nginx/1.25. "
    )
    assert str(from_status("house", 502, "502 Bad Gateway")).startswith("house answered 502 (Bad Gateway). ")
    assert str(from_status("house", 599, "599 bottles")).startswith("house answered 599: 599 bottles. ")


def test_its_code_alone_tells_too() -> None:
    assert type(from_status("house", 400, "Too much.", code="context_length_exceeded")) is ContextOverflow
    assert type(in_stream("house", ErrorDetails("Too much.", "exceed_context_size_error"))) is ContextOverflow


@pytest.mark.parametrize(
    ("status", "said", "error"),
    [
        (400, "max_tokens is too large: 99999. This model supports at most 4096 completion tokens.", ModelRejected),
        (429, "Rate limit reached on tokens per min: reduce the length of the messages", ModelUnavailable),
    ],
)
def test_what_only_looks_like_it(status: int, said: str, error: type[ModelError]) -> None:
    assert type(from_status("house", status, said)) is error


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("7", 7.0),
        ("1.5", 1.5),
        ("-3", None),
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30.0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("Sun, 99 Nov 1994 99:00:00 GMT", None),
    ],
)
def test_retry_after(written: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": written}, now=784_111_777.0) == seconds  # 06 Nov 1994 08:49:37 GMT


# --- the key is never told


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_provider_that_quotes_the_key(kind: str) -> None:
    with Provider(key=SECRET) as provider:
        dialect = getattr(provider, kind)
        said = f"Wrong key {SECRET}!"
        for status in (400, 401, 500):
            dialect.fail(status, said)
        dialect.fail(400, body=f"<p>{said}</p>".encode())
        dialect.send(b'data: {"type":"error","error":{"message":"%b"}}\n\n' % said.encode())
        dialect.send(b"data: %b\n\n" % said.encode())
        dialect.send(Cut())
        limits = Limits(retry_wait=0)
        for _ in range(7):
            outcome = ask(catalog.create("house/m", {"house": dialect.settings()}, limits, {}))
            assert outcome.error is not None
            assert SECRET not in f"{outcome.error} {outcome.error!r} {outcome.error.said}"
        assert len(dialect.requests) == 7


@pytest.mark.parametrize("key", [f"{SECRET}\nx", f"{SECRET}\x00", f"{SECRET}ß"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    settings = ProviderSettings(type="openai", base_url="http://127.0.0.1:1", api_key_env="HOUSE_KEY")
    with pytest.raises(ConfigError, match="HOUSE_KEY") as caught:
        catalog.create("house/m", {"house": settings}, Limits(), {"HOUSE_KEY": key})
    assert SECRET not in str(caught.value)


def test_a_key_with_a_line_break_at_its_end_is_taken_without() -> None:
    with Provider(key=SECRET) as provider:
        provider.openai.answer("Hi")
        settings = ProviderSettings(type="openai", base_url=provider.openai.url, api_key_env="HOUSE_KEY")
        model = catalog.create("house/m", {"house": settings}, Limits(), {"HOUSE_KEY": f"{SECRET}\n"})
        assert ask(model).error is None


def test_a_password_in_the_address_is_used_and_not_shown() -> None:
    with Provider() as provider:
        provider.openai.fail(401, "hunter2 is no good password")
        url = provider.openai.url.replace("//", "//me:hunter%32@")
        settings = ProviderSettings(type="openai", base_url=url)
        error = ask(catalog.create("house/m", {"house": settings}, Limits(), {})).error
        assert "[secret] is no good password" in str(error)
        assert provider.openai.requests[0].headers["authorization"] == "Basic bWU6aHVudGVyMg=="  # me:hunter2
    error = ask(catalog.create("house/m", {"house": settings}, Limits(retry_wait=0), {})).error
    assert f"at {provider.openai.url}." in str(error)
    assert "hunter" not in str(error)


def test_the_model_does_not_show_its_key() -> None:
    settings = ProviderSettings(type="openai", base_url="http://127.0.0.1:1", api_key=SECRET)
    model = catalog.create("house/m", {"house": settings}, Limits(), {})
    assert SECRET not in repr(model) + repr(vars(model)) + repr(model._http.endpoint)  # type: ignore[attr-defined]
