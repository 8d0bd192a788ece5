"""Request bodies: bounded in size, and JSON that means one thing only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retrieval_api.problems import problem

MAX_BODY_BYTES: Final = 1_000_000


class BodyLimit:
    """ASGI middleware: answers 413 to a body above `MAX_BODY_BYTES`, announced or sent in parts.

    ``larger`` gives the bytes allowed at paths that take more.
    """

    def __init__(self, app: ASGIApp, larger: Mapping[str, int] = MappingProxyType({})) -> None:
        self.app = app
        self.larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        most = self.larger.get(path, MAX_BODY_BYTES)
        too_large = f"the body is larger than {most:,} bytes"
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and (len(announced) > 12 or int(announced) > most):
            await problem(413, "http", too_large)(scope, receive, send)
            return
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise HTTPException(413, too_large)
            return message

        await self.app(scope, receive_bounded, send)


async def read_json(request: Request, *, such_as: str = "{…}") -> Any:
    """The body as JSON. Raises as `parse_json`; where there is no body at all, what to send
    ``such_as`` this."""
    return parse_json(await request.body(), such_as=such_as)


def parse_json(raw: bytes, *, such_as: str = "{…}") -> Any:
    """Raises `HTTPException` (400) for what is not JSON, and for no body at all.

    That includes NaN and Infinity, nesting or numbers beyond Python's limits, and a key given
    twice in an object: with two values a filter could widen the query it should narrow.
    """
    if not raw.strip():
        raise HTTPException(400, f"the body is empty: send a JSON object, {such_as}")
    try:
        return json.loads(raw, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise _invalid("not UTF-8") from error
    except json.JSONDecodeError as error:
        raise _invalid(f"{error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise _invalid("nested too deeply") from error
    except ValueError as error:
        raise _invalid(str(error).split(";", maxsplit=1)[0]) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _invalid(reason: str) -> HTTPException:
    return HTTPException(400, f"the body is not valid JSON: {reason}")
