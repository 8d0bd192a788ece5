"""The built-in token endpoint: OAuth 2.0 client credentials (RFC 6749, section 4.4)."""

from __future__ import annotations

import base64
import hmac
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.storage.postgres import service as queries
from knowledge.storage.postgres.catalogue import secret_hash
from retrieval_api.service import service_of

_MAX_CREDENTIAL_CHARS = 256


async def issue_token(request: Request) -> Response:
    service = service_of(request)
    form = await request.form(max_files=0, max_fields=20)
    if form.get("grant_type") != "client_credentials":
        return _error(400, "unsupported_grant_type", "grant_type must be client_credentials")
    client_id, secret = _credentials(request, form.get("client_id"), form.get("client_secret"))
    if not client_id or len(client_id) > _MAX_CREDENTIAL_CHARS or "\0" in client_id:
        return _error(401, "invalid_client", "unknown client or wrong secret")
    client = await queries.client_for_token(service.database, client_id)
    known = bytes(client["secret_hash"]) if client else b"\0" * 32
    if not hmac.compare_digest(known, secret_hash(secret)) or client is None:
        return _error(401, "invalid_client", "unknown client or wrong secret")
    asked = str(form.get("scope") or "").split()
    if unknown := sorted(set(asked) - set(client["scopes"])):
        return _error(400, "invalid_scope", f"the client does not have the scope {unknown[0][:80]}")
    scopes = asked or list(client["scopes"])
    token = service.tokens.issue(client_id=client_id, tenant_id=client["tenant_id"], scopes=scopes)
    return JSONResponse(
        {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": service.tokens.lifetime_s,
            "scope": " ".join(scopes),
        },
        headers={"Cache-Control": "no-store"},
    )


def _credentials(request: Request, client_id: object, secret: object) -> tuple[str, str]:
    """From HTTP basic authentication, else from the form; empty strings when absent."""
    kind, _, encoded = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "basic":
        try:
            name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:  # not ASCII, not base64, or not UTF-8 inside
            return "", ""
        return unquote(name), unquote(password)
    return (
        client_id if isinstance(client_id, str) else "",
        secret if isinstance(secret, str) else "",
    )


def _error(status: int, code: str, description: str) -> Response:
    headers = {"Cache-Control": "no-store"}
    if status == 401:
        headers["WWW-Authenticate"] = "Basic"
    return JSONResponse({"error": code, "error_description": description}, status, headers)
