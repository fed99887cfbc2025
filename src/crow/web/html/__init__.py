"""HTML as text. All of it runs in a process of its own, as pages may be hostile.

page.py       from a page to Markdown: the steps, in the files below
  about.py    what a page says of itself: its title, its date
  formulas.py formulas, kept once
  controls.py buttons and boxes that are content
  cleaning.py what of it is content
  outline.py  walks over it whose cost is its length
  shapes.py   many spellings of one thing, brought into one
  code.py     code: its text and its language
  links.py    links that lead somewhere from anywhere
  markdown.py and from there to Markdown
  instead.py  what can be said where there is next to nothing
plain.py      a page as plain text, in one pass: where the other way fails
"""
