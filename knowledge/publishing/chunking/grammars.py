"""The tree-sitter grammars, and which of their nodes are definitions.

Every query captures up to four kinds of nodes:

- ``container``: a definition that holds others (class, namespace, impl block); it is always
  opened, its members become definitions of their own;
- ``leaf``: a definition that stays in one piece (function, method, struct);
- ``wrap``: a node around a definition whose first line belongs to it;
- ``prefix``: comments, decorators and attributes; on the lines directly above a definition
  they belong to it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Final

from tree_sitter import Language, Parser, Query

_ECMASCRIPT: Final = """
(class_declaration) @container
(class) @container
[(function_declaration) (generator_function_declaration) (method_definition)] @leaf
(variable_declarator value: [(arrow_function) (function_expression)]) @leaf
(assignment_expression
  left: (member_expression) right: [(arrow_function) (function_expression)]) @leaf
(pair value: [(arrow_function) (function_expression)]) @leaf
(export_statement) @wrap
[(comment) (decorator)] @prefix
"""
_TYPESCRIPT: Final = (
    _ECMASCRIPT
    + """
[(abstract_class_declaration) (internal_module)] @container
[(interface_declaration) (type_alias_declaration) (enum_declaration)] @leaf
(public_field_definition value: [(arrow_function) (function_expression)]) @leaf
(ambient_declaration) @wrap
"""
)
_C: Final = """
(function_definition) @leaf
(struct_specifier name: (_) body: (_)) @leaf
(union_specifier name: (_) body: (_)) @leaf
(enum_specifier name: (_) body: (_)) @leaf
(type_definition type: (struct_specifier body: (_))) @leaf
(comment) @prefix
"""


@dataclass(frozen=True, slots=True)
class _Source:
    module: str
    query: str
    function: str = "language"


_SOURCES: Final[dict[str, _Source]] = {
    "python": _Source(
        "tree_sitter_python",
        """
        (class_definition) @container
        (function_definition) @leaf
        [(comment) (decorator)] @prefix
        """,
    ),
    "javascript": _Source(
        "tree_sitter_javascript",
        _ECMASCRIPT + "(field_definition value: [(arrow_function) (function_expression)]) @leaf",
    ),
    "typescript": _Source("tree_sitter_typescript", _TYPESCRIPT, "language_typescript"),
    "tsx": _Source("tree_sitter_typescript", _TYPESCRIPT, "language_tsx"),
    "go": _Source(
        "tree_sitter_go",
        """
        [(function_declaration) (method_declaration) (type_declaration)] @leaf
        (comment) @prefix
        """,
    ),
    "java": _Source(
        "tree_sitter_java",
        """
        [(class_declaration) (interface_declaration) (enum_declaration)
         (record_declaration) (annotation_type_declaration)] @container
        [(method_declaration) (constructor_declaration)
         (compact_constructor_declaration)] @leaf
        [(line_comment) (block_comment)] @prefix
        """,
    ),
    "rust": _Source(
        "tree_sitter_rust",
        """
        [(impl_item) (trait_item) (mod_item body: (_))] @container
        [(function_item) (struct_item) (enum_item) (union_item) (macro_definition)] @leaf
        [(line_comment) (block_comment) (attribute_item)] @prefix
        """,
    ),
    "c": _Source("tree_sitter_c", _C),
    "cpp": _Source(
        "tree_sitter_cpp",
        """
        [(class_specifier name: (_) body: (_)) (struct_specifier name: (_) body: (_))
         (namespace_definition)] @container
        [(function_definition) (enum_specifier name: (_) body: (_))] @leaf
        (template_declaration) @wrap
        (comment) @prefix
        """,
    ),
    "csharp": _Source(
        "tree_sitter_c_sharp",
        """
        [(class_declaration) (interface_declaration) (struct_declaration)
         (record_declaration) (namespace_declaration)] @container
        [(method_declaration) (constructor_declaration) (destructor_declaration)
         (operator_declaration) (conversion_operator_declaration) (indexer_declaration)
         (enum_declaration)] @leaf
        (comment) @prefix
        """,
    ),
    "ruby": _Source(
        "tree_sitter_ruby",
        """
        [(class) (module) (singleton_class)] @container
        [(method) (singleton_method)] @leaf
        (comment) @prefix
        """,
    ),
}

LANGUAGES_WITH_GRAMMAR: Final = frozenset(_SOURCES) - {"tsx"}


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language and the query for its definitions. Parsers are not shared by threads."""

    language: Language
    definitions: Query

    def parser(self) -> Parser:
        return Parser(self.language)


@cache
def grammar(name: str) -> Grammar:
    """The grammar of a language in `LANGUAGES_WITH_GRAMMAR`, or ``tsx``; else `KeyError`."""
    source = _SOURCES[name]
    module = importlib.import_module(source.module)
    language = Language(getattr(module, source.function)())
    return Grammar(language, Query(language, source.query))
