"""The vendors Crow knows by name: where they answer, which variable holds their key, which model to begin with."""

from typing import Literal

import msgspec


class Vendor(msgspec.Struct, frozen=True):
    title: str
    type: Literal["openai", "anthropic"]
    base_url: str
    key_variable: str
    default_model: str
    """Chosen when nothing else says which: good at code, and a name that outlives a release where there is one."""
    keys_page: str
    """Where a person gets a key."""


VENDORS: dict[str, Vendor] = {
    "anthropic": Vendor(
        title="Anthropic",
        type="anthropic",
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        default_model="claude-sonnet-5",
        keys_page="https://console.anthropic.com/settings/keys",
    ),
    "openai": Vendor(
        title="OpenAI",
        type="openai",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        default_model="gpt-5.6",
        keys_page="https://platform.openai.com/api-keys",
    ),
    "openrouter": Vendor(
        title="OpenRouter",
        type="openai",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        default_model="openrouter/auto",
        keys_page="https://openrouter.ai/settings/keys",
    ),
    "gemini": Vendor(
        title="Google Gemini",
        type="openai",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
        default_model="gemini-flash-latest",
        keys_page="https://aistudio.google.com/apikey",
    ),
    "mistral": Vendor(
        title="Mistral",
        type="openai",
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        default_model="mistral-medium-latest",
        keys_page="https://console.mistral.ai/api-keys",
    ),
    "deepseek": Vendor(
        title="DeepSeek",
        type="openai",
        base_url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        default_model="deepseek-flash",
        keys_page="https://platform.deepseek.com/api_keys",
    ),
    "groq": Vendor(
        title="Groq",
        type="openai",
        base_url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        default_model="openai/gpt-oss-120b",
        keys_page="https://console.groq.com/keys",
    ),
    "xai": Vendor(
        title="xAI",
        type="openai",
        base_url="https://api.x.ai/v1",
        key_variable="XAI_API_KEY",
        default_model="grok-4.5",
        keys_page="https://console.x.ai",
    ),
}
"""In the order in which their variables are looked for."""
