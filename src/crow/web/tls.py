"""Whom to believe in a TLS handshake."""

import functools
import ssl

import httpx2


@functools.cache
def context_for(scheme: str) -> ssl.SSLContext:
    """The system's authorities, or those that SSL_CERT_FILE names. Kept: loading them costs memory and time."""
    if scheme == "https":
        return httpx2.create_ssl_context(trust_env=True)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # empty: without one the library would load the authorities
