"""The web: which addresses may be reached, fetching a page within limits, reading it, and asking a search service.

urls.py                what an address is: read strictly, written in one way
addresses.py           which IP addresses are public
reach.py               from a host to the addresses that may be connected to
tls.py                 which certificates are believed
proxies.py             what is said where only a proxy would lead out
fetching.py            one page, over checked addresses only, within limits
pages.py               pages, fetched a few at a time, and kept while they are read in pieces
unpacking.py           from compressed bytes to plain ones, within limits
charset.py             from bytes to text
reading.py             what came, as text or as a picture
conversion.py          handing a page to a process of its own …
conversion_process.py  … which makes Markdown of HTML, or plain text if that fails, and text of PDF
conversion_job.py      what the two of them say to each other
html/                  HTML as Markdown, or as plain text
pdf.py                 PDF as text
search/                the search services, one file each
"""
