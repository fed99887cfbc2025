"""The web: which addresses may be reached, fetching a page within limits, reading it, and asking a search service.

A page is converted in a process of its own (`conversion`, `conversion_process`): a hostile one can harm nothing else.

Where is …?
- which web addresses may be reached: `urls.py` (reads an address), `allowed_hosts.py` (which hosts and IP addresses),
  `tools/web.py` (where a redirect may lead)
- how a page is fetched: `fetching.py` (over HTTP, within limits), `page_cache.py` (remembers the last ones)
- how a page becomes text: `page_content.py` (what kind it is), `conversion.py` (the process beside),
  `html/main_content.py` (finds the article, drops what is around it), `html/markdown.py` (Markdown)
- in which charset a page is read: `page_content.py` (`charset`)
- the search services: `search.py`
"""
