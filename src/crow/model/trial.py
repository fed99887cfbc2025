"""One tiny request to a model: the only way to know that it answers.

A list of models proves little. Some are public, so that any key gets one, and not every model on it is for everybody.
"""

import contextlib
import re
from collections.abc import Mapping

import msgspec

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ModelRejected, ModelUnavailable
from crow.messages import Text, UserMessage
from crow.model import catalog
from crow.model.base import ModelRequest
from crow.model.wires import anthropic, openai
from crow.timeouts import timeout

PATIENCE = 60.0
"""Seconds; a server on this machine may have to load the model first."""
LONGEST_ANSWER = 16
"""Tokens. Some servers refuse a limit of one."""

CUT_OFF = r"max_tokens or model output limit was reached"
"""How OpenAI words it that a model was still thinking when its tokens were used up: it did answer."""

QUESTION = ModelRequest("", (UserMessage((Text("Say hi."),)),))


async def try_model(name: str, providers: Mapping[str, ProviderSettings], environ: Mapping[str, str]) -> None:
    """Returns if the model answered, raises what a reply would raise. Nothing is tried twice."""
    info = msgspec.structs.replace(catalog.describe(name, providers), max_output=LONGEST_ANSWER)
    settings = providers.get(info.provider)
    if settings is None or settings.type == "scripted":
        return
    adapter = anthropic if settings.type == "anthropic" else openai
    model = adapter.create(info, settings, Limits(stream_idle=PATIENCE), environ)
    try:
        async with timeout(PATIENCE), contextlib.aclosing(model.reply(QUESTION)) as events:
            async for _ in events:
                pass
    except ModelRejected as error:
        if not re.search(CUT_OFF, error.said, re.IGNORECASE):
            raise
    except TimeoutError:
        raise ModelUnavailable(
            f"{info.provider} did not finish a short answer within {PATIENCE:g} s.", provider=info.provider
        ) from None
    finally:
        await model.close()
