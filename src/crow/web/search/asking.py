"""One request to a search service, and its failures in words: our own, since a service's may hold the key."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx2
import msgspec

import crow
from crow.errors import WebError
from crow.timeouts import timeout
from crow.web.proxies import mind_the_proxy
from crow.web.search.base import Account, readable
from crow.web.tls import context_for

MOST_SECONDS = 15.0
LARGEST_ANSWER = 2 * 1024 * 1024

Answer = TypeVar("Answer")


async def ask(
    account: Account,
    path: str,
    answer: type[Answer],
    *,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """With a body it is a POST. The person configured the address, so that it may be a private one."""
    try:
        async with timeout(MOST_SECONDS), _client(account) as client:
            request = client.build_request(
                "POST" if body is not None else "GET",
                f"{account.address}{path}",
                params=query,
                json=body,
                headers={"accept": "application/json", **(headers or {})},
            )
            response = await client.send(request, stream=True)
            async with contextlib.aclosing(response):
                if response.status_code != 200:
                    raise _refused(account, response.status_code)
                content = await _read(response)
    except (TimeoutError, httpx2.TimeoutException):
        remedy = _or_the_proxy(account, "Try again later.")
        raise _unusable(account, f"did not answer within {MOST_SECONDS:g} s", remedy) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):  # a header cannot hold every key
        remedy = _or_the_proxy(account, "Check url and the key in the section [web] of config.toml, and the network.")
        raise _unusable(account, "cannot be asked", remedy) from None
    try:
        return msgspec.json.decode(content, type=answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise _no_list(account) from None


def results(account: Account, entries: Sequence[Any], kind: type[Answer]) -> list[Answer]:
    """The entries of an answer that can be read."""
    try:
        return readable(entries, kind)
    except msgspec.ValidationError:
        raise _no_list(account) from None


def _client(account: Account) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers={"user-agent": f"crow/{crow.__version__}"},
        timeout=MOST_SECONDS,
        verify=context_for(account.address.partition(":")[0]),
        trust_env=False,
    )


async def _read(response: httpx2.Response) -> bytes:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > LARGEST_ANSWER:
            break  # cut off, and so no longer JSON
    return bytes(content)


def _refused(account: Account, status: int) -> WebError:
    match status:
        case 401 | 403 if account.key_name:
            return _unusable(account, f"refused the key (status {status})", f"Check {account.key_name}.")
        case 401 | 403:
            remedy = "SearXNG gives results to programs only if `json` is among search.formats in its settings.yml."
            return _unusable(account, f"refused the request (status {status})", remedy)
        case 402 | 429 | 432 | 433:
            remedy = "Wait a while, or look at the plan of your account."
            return _unusable(account, f"takes no more requests for now (status {status})", remedy)
        case _ if status >= 500:
            return _unusable(account, f"has a problem of its own (status {status})", "Try again later.")
        case _:
            return _unusable(account, f"did not take the request (status {status})", "Check url in [web].")


def _no_list(account: Account) -> WebError:
    remedy = f"Check url in the section [web] of config.toml: is it the address of {account.name}?"
    return _unusable(account, "answered with something that is no list of results", remedy)


def _or_the_proxy(account: Account, remedy: str) -> str:
    return mind_the_proxy(remedy, account.address.partition(":")[0], account.host)


def _unusable(account: Account, what: str, remedy: str) -> WebError:
    return WebError(f"{account.name} at {account.host} {what}.", remedy=remedy)
