"""Which of a provider's models to use: picked by number, by name, or by a part of the name."""

from crow.cli.terminal import ask
from crow.config.discovery import can_chat

SHOWN = 20
MOST_NAMED = 6


def pick_model(listed: list[str] | None, preferred: str) -> str:
    """`listed` is None if the provider has no list; then the name must be typed."""
    if not listed:
        print("The provider does not list its models; type the name of one." if listed is None else "It has no model.")
        return _ask_for_name(preferred)
    models = sorted(listed, key=lambda model: (model != preferred, not can_chat(model)))
    shown: list[str] = models
    while True:
        _show(shown)
        answer = ask("Model (a number, a name, or a part of one)", models[0])
        if answer.isdecimal() and 0 < int(answer) <= len(shown[:SHOWN]):
            return shown[int(answer) - 1]
        if answer in models:
            return answer
        matches = [model for model in models if answer.lower() in model.lower()]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            print(f'No model has "{answer}" in its name.')
        shown = matches or models


def is_listed(model: str, listed: list[str]) -> bool:
    """Vendors list some models by a dated name or a path, and know the short name all the same."""
    return any(is_same_model(other, model) for other in listed)


def is_same_model(listed: str, model: str) -> bool:
    return listed == model or listed.startswith(f"{model}-") or listed.endswith(f"/{model}")


def named(provider: str, models: list[str], wanted: str = "") -> str:
    """The models that a provider has, in a sentence: those that are most like `wanted` first."""
    import difflib

    usable = [model for model in models if can_chat(model)]
    if not usable:
        return "It has no model."
    near = difflib.get_close_matches(wanted, usable, n=MOST_NAMED, cutoff=0.5) if wanted else []
    shown = [*near, *(model for model in usable if model not in near)][:MOST_NAMED]
    if len(usable) > len(shown):
        return f"It has {', '.join(shown)} and {len(usable) - len(shown)} more: crow models {provider}"
    return f"It has {', '.join(shown)}."


def _ask_for_name(preferred: str) -> str:
    while not (name := ask("Model", preferred)):
        pass
    return name


def _show(models: list[str]) -> None:
    for number, model in enumerate(models[:SHOWN], start=1):
        print(f"  {number:>2}  {model}")
    if len(models) > SHOWN:
        print(f"      and {len(models) - SHOWN} more")
