"""Request bodies: bounded in size, and JSON that means one thing only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

import numpy as np
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retrieval_api.problems import problem

MAX_BODY_BYTES: Final = 1_000_000
MAX_VALUES: Final = 200_000
"""Of one body: 5,000 facts with all their fields. Millions of empty lists fit into the bytes that
are allowed, and no other thread runs while they are read."""

_SYMBOLS: Final = (b"[", b"{", b",")
_QUOTE: Final = ord('"')


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
    """Raises `HTTPException` (400) for what is not JSON in UTF-8, for more than `MAX_VALUES`, and
    for no body at all.

    That includes NaN and Infinity, nesting or numbers beyond Python's limits, and a key given
    twice in an object: with two values a filter could widen the query it should narrow.
    """
    if not raw.strip():
        raise HTTPException(400, f"the body is empty: send a JSON object, {such_as}")
    if _has_many_values(raw):
        raise HTTPException(
            400, f"the body holds more than {MAX_VALUES:,} values: send it in several parts"
        )
    try:
        return json.loads(
            raw.decode("utf-8-sig"),  # of no other encoding were the values counted
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as error:
        raise _invalid("not UTF-8") from error
    except json.JSONDecodeError as error:
        raise _invalid(f"{error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise _invalid("nested too deeply") from error
    except ValueError as error:
        raise _invalid(str(error).split(";", maxsplit=1)[0]) from error


def _has_many_values(raw: bytes) -> bool:
    """Every value opens a list or an object, follows a comma, or is the only one of its container."""
    if sum(map(raw.count, _SYMBOLS)) <= MAX_VALUES:
        return False
    # A long text may hold as many: what stands outside of strings counts.
    plain = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    symbols = np.frombuffer(plain, np.uint8)
    is_outside = ~np.logical_xor.accumulate(symbols == _QUOTE)
    outside = symbols[is_outside].tobytes()
    return sum(map(outside.count, _SYMBOLS)) > MAX_VALUES


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _invalid(reason: str) -> HTTPException:
    return HTTPException(400, f"the body is not valid JSON: {reason}")
