"""HTML as text. All of it runs in a process of its own, as pages may be hostile.

`markdown` makes Markdown of a page: `main_content` finds what of it is content, `normalise` brings many spellings of
one thing into one. `plain_text` reads a page in one pass, where the other way fails.
"""
