"""The table of vendors that Crow knows by name: where they answer, which variable holds their key, which model to begin
with.
"""

import re
from collections.abc import Mapping
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
    other_variables: tuple[str, ...] = ()
    """Further names of the variable, under which people have the same key."""
    address_variable: str = ""
    """Holds another address that the same key is meant for, such as a gateway's."""
    region: str = ""
    """The part of the address that is another one in each region."""
    region_variables: tuple[str, ...] = ()
    """Hold the region, if one is set."""
    key_has_other_uses: bool = False
    """The variable is set by people who never meant it for a model: a server on this machine goes before it."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        return (self.key_variable, *self.other_variables)

    def variable_in(self, environ: Mapping[str, str]) -> str:
        """The variable that holds a key; empty if none does."""
        return next((name for name in self.key_variables if environ.get(name, "").strip()), "")

    def address_in(self, environ: Mapping[str, str]) -> str:
        """Where the key in the vendor's variable is meant for."""
        if self.address_variable and (address := environ.get(self.address_variable)):
            return address
        region = next(filter(None, map(environ.get, self.region_variables)), "")
        return self.base_url.replace(self.region, region) if _REGION.fullmatch(region) else self.base_url

    def is_at(self, address: str) -> bool:
        """Whether the vendor answers there, in whichever region."""
        if not self.region:
            return address == self.base_url
        before, after = self.base_url.split(self.region)
        region = address.removeprefix(before).removesuffix(after)
        return address == f"{before}{region}{after}" and _REGION.fullmatch(region) is not None


_REGION = re.compile(r"[a-z0-9-]+")


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
        address_variable="OPENAI_BASE_URL",
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
    "moonshot": Vendor(
        title="Moonshot",
        type="openai",
        base_url="https://api.moonshot.ai/v1",
        key_variable="MOONSHOT_API_KEY",
        default_model="kimi-k3",
        keys_page="https://platform.moonshot.ai/console/api-keys",
    ),
    "zai": Vendor(
        title="Z.AI",
        type="openai",
        base_url="https://api.z.ai/api/paas/v4",
        key_variable="ZAI_API_KEY",
        default_model="glm-5.3",
        keys_page="https://z.ai/manage-apikey/apikey-list",
        other_variables=("ZHIPU_API_KEY",),
    ),
    "cerebras": Vendor(
        title="Cerebras",
        type="openai",
        base_url="https://api.cerebras.ai/v1",
        key_variable="CEREBRAS_API_KEY",
        default_model="gpt-oss-120b",
        keys_page="https://cloud.cerebras.ai",
    ),
    "minimax": Vendor(
        title="MiniMax",
        type="anthropic",
        base_url="https://api.minimax.io/anthropic/v1",
        key_variable="MINIMAX_API_KEY",
        default_model="MiniMax-M3",
        keys_page="https://platform.minimax.io/user-center/basic-information/interface-key",
    ),
    "kimi": Vendor(
        title="Kimi for Coding",
        type="anthropic",
        base_url="https://api.kimi.com/coding/v1",
        key_variable="KIMI_API_KEY",
        default_model="kimi-for-coding",
        keys_page="https://www.kimi.com/coding/docs",
    ),
    "alibaba": Vendor(
        title="Alibaba Cloud Model Studio",
        type="openai",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_variable="DASHSCOPE_API_KEY",
        default_model="qwen3.8-max",
        keys_page="https://modelstudio.console.alibabacloud.com",
    ),
    "together": Vendor(
        title="Together AI",
        type="openai",
        base_url="https://api.together.xyz/v1",
        key_variable="TOGETHER_API_KEY",
        default_model="moonshotai/Kimi-K3",
        keys_page="https://api.together.ai/settings/api-keys",
    ),
    "fireworks": Vendor(
        title="Fireworks AI",
        type="openai",
        base_url="https://api.fireworks.ai/inference/v1",
        key_variable="FIREWORKS_API_KEY",
        default_model="accounts/fireworks/models/kimi-k3",
        keys_page="https://app.fireworks.ai/settings/users/api-keys",
    ),
    "vercel": Vendor(
        title="Vercel AI Gateway",
        type="openai",
        base_url="https://ai-gateway.vercel.sh/v1",
        key_variable="AI_GATEWAY_API_KEY",
        default_model="anthropic/claude-sonnet-5",
        keys_page="https://vercel.com/ai-gateway",
    ),
    "nvidia": Vendor(
        title="NVIDIA",
        type="openai",
        base_url="https://integrate.api.nvidia.com/v1",
        key_variable="NVIDIA_API_KEY",
        default_model="moonshotai/kimi-k3",
        keys_page="https://build.nvidia.com",
        key_has_other_uses=True,
    ),
    "ollama-cloud": Vendor(
        title="Ollama's cloud",
        type="openai",
        base_url="https://ollama.com/v1",
        key_variable="OLLAMA_API_KEY",
        default_model="gpt-oss:120b",
        keys_page="https://ollama.com/settings/keys",
        key_has_other_uses=True,
    ),
    "bedrock": Vendor(
        title="Amazon Bedrock",
        type="openai",
        base_url="https://bedrock-mantle.us-east-1.api.aws/v1",
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
        default_model="openai.gpt-oss-120b",
        keys_page="https://console.aws.amazon.com/bedrock/home#/api-keys",
        region="us-east-1",
        region_variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
        key_has_other_uses=True,
    ),
    "huggingface": Vendor(
        title="Hugging Face",
        type="openai",
        base_url="https://router.huggingface.co/v1",
        key_variable="HF_TOKEN",
        default_model="openai/gpt-oss-120b",
        keys_page="https://huggingface.co/settings/tokens",
        key_has_other_uses=True,
    ),
}
"""In the order in which their variables are looked for."""
