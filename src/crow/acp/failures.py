"""Our errors as the protocol's: a code for the client, and words for the person."""

from crow.acp.jsonrpc import ErrorCode, RpcError
from crow.errors import CrowError, ModelRefusedKey, SetupNeeded


def as_rpc_error(error: CrowError) -> RpcError:
    """`message` is what most clients show; some show `data.details` instead, and only if nothing else is in `data`."""
    needs_login = isinstance(error, SetupNeeded | ModelRefusedKey)
    code = ErrorCode.AUTH_REQUIRED if needs_login else ErrorCode.INTERNAL_ERROR
    return RpcError(code, str(error), {"details": str(error)})
