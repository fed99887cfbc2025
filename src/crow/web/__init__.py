"""The web: which addresses may be reached, fetching a page within limits, reading it, and asking a search service.

A page is converted in a process of its own (`conversion`, `conversion_process`): a hostile one can harm nothing else.
"""
