"""Whether something still holds a text."""

from __future__ import annotations

import gc
import types


def reachable(root: object, word: str) -> bool:
    """Whether a text with ``word`` hangs on ``root``: attributes, tasks, frames, exceptions."""
    gc.collect()
    seen: set[int] = set()
    todo = [root]
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, types.ModuleType | type):
            continue
        seen.add(id(each))
        if isinstance(each, str) and word in each:
            return True
        if isinstance(each, types.FunctionType):  # not by its globals into the whole program
            todo += [each.__closure__, each.__defaults__]
            continue
        if isinstance(each, dict) and "__builtins__" in each:
            continue
        todo += gc.get_referents(each)
    return False
