"""The web: which addresses may be reached, fetching a page within limits, reading it, and asking a search service.

A page is converted in a process of its own (`conversion_process`), which alone loads `main_content`, `normalise`,
`markdown` and `plain_text`: a hostile page can harm nothing else.

Where is …?
- which web addresses may be reached: `addresses.py`, `tools/web.py` (where a redirect may lead)
- how a page is fetched: `fetching.py` (over HTTP, within limits), `page_cache.py` (remembers the last ones)
- how a page becomes text: `page_content.py` (what kind it is, and in which charset), `conversion_process.py` (the
  process beside; PDF)
- what of a page is its article: `main_content.py`; how HTML becomes Markdown: `normalise.py`, `markdown.py`
- what is done with a page that is too large or too deep: `plain_text.py`
- the search services: `search.py`
"""
