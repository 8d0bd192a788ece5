"""Source code is cut at its definitions."""

from __future__ import annotations

import pytest

from knowledge.model.chunk import Chunk
from knowledge.publishing.chunking import chunk_file


def chunks_of(path: str, text: str, max_tokens: int = 220) -> list[Chunk]:
    return chunk_file(path, text, max_tokens=max_tokens)


def outline_of(path: str, text: str, max_tokens: int = 220) -> list[tuple[str, int, int]]:
    chunks = chunks_of(path, text, max_tokens)
    return [(chunk.anchor, *(chunk.lines or (0, 0))) for chunk in chunks]


PYTHON = '''\
"""Doc."""
import re

# Why it is so.
@cache
@other(
    1,
)
def first(a):
    # inside
    return a


class Shop(Base):
    """A shop."""

    size = 1

    @property
    def price(self):
        return 1
    @price.setter
    def price(self, value):
        self._price = value

    async def close(self): ...


LIMIT = 3
'''


def test_python_functions_methods_class_heads_and_the_rest() -> None:
    assert outline_of("pkg/shop.py", PYTHON) == [
        ("", 1, 2),
        ("first", 4, 11),
        ("Shop", 14, 17),
        ("Shop.price", 19, 21),
        ("Shop.price~2", 22, 24),
        ("Shop.close", 26, 26),
        ("~2", 29, 29),
    ]


def test_chunks_of_code_say_their_language_and_what_they_are() -> None:
    chunks = chunks_of("pkg/shop.py", PYTHON)
    assert {(chunk.kind, chunk.language, chunk.path) for chunk in chunks} == {
        ("code", "python", "pkg/shop.py")
    }
    assert [chunk.title for chunk in chunks][:4] == ["shop.py", "first", "Shop", "Shop.price"]


CASES: dict[str, tuple[str, str, list[tuple[str, int, int]]]] = {
    "javascript": (
        "a.js",
        (
            "import x from 'y';\n"
            "/** Doc. */\nexport default async function load(a) {\n  return a;\n}\n"
            "const add = (a, b) => {\n  return a + b;\n};\n"
            "export class Shop {\n  close() {\n  }\n  open = () => {};\n}\n"
            "Shop.prototype.late = function () {\n};\n"
            "exports.util = function () {};\n"
        ),
        [
            ("", 1, 1),
            ("load", 2, 5),
            ("add", 6, 8),
            ("Shop", 9, 9),
            ("Shop.close", 10, 11),
            ("Shop.open", 12, 13),
            ("Shop.late", 14, 15),
            ("util", 16, 16),
        ],
    ),
    "typescript": (
        "a.ts",
        (
            "@Injectable({\n  a: 1,\n})\nexport class Store<T> {\n  @Input() a = 1;\n\n"
            "  get(key: string): T {\n    return this.m[key];\n  }\n}\n"
            "interface Shape { area(): number }\n"
            "export abstract class Base {\n  abstract run(): void;\n  stop(): void {\n  }\n}\n"
        ),
        [
            ("Store", 1, 5),
            ("Store.get", 7, 10),
            ("Shape", 11, 11),
            ("Base", 12, 13),
            ("Base.stop", 14, 16),
        ],
    ),
    "tsx": (
        "a.tsx",
        "export const App = () => {\n  return <div>hi</div>;\n};\n",
        [("App", 1, 3)],
    ),
    "go": (
        "a.go",
        (
            "package shop\n\n// Run runs.\nfunc (s *Server[T]) Run(a int) error {\n\treturn nil\n}\n\n"
            "type Shape struct {\n\tW int\n}\n\nfunc New() *Shape { return nil }\n"
        ),
        [("", 1, 1), ("Server.Run", 3, 6), ("Shape", 8, 10), ("New", 12, 12)],
    ),
    "java": (
        "A.java",
        (
            "package a;\n\n/** Doc. */\n@Component\npublic class Shop<T> {\n  int size;\n\n"
            "  /** Close. */\n  @Override\n  public void close() {\n  }\n\n  Shop() {\n  }\n}\n"
        ),
        [("", 1, 1), ("Shop", 3, 6), ("Shop.close", 8, 11), ("Shop.Shop", 13, 15)],
    ),
    "rust": (
        "a.rs",
        (
            "use x;\n\n/// Doc.\n#[derive(Debug)]\npub struct Shop<T> { t: T }\n\n"
            "impl<T> Closer for Shop<T> {\n    /// Close.\n    fn close(&self) {\n    }\n}\n"
        ),
        [("", 1, 1), ("Shop", 3, 5), ("Shop~2", 7, 7), ("Shop.close", 8, 11)],
    ),
    "c": (
        "a.c",
        (
            "#include <x.h>\n\n/* Doc. */\nstatic int *\nfind(int a)\n{\n  return 0;\n}\n\n"
            "typedef struct {\n  int a;\n} Shop;\n"
        ),
        [("", 1, 1), ("find", 3, 8), ("Shop", 10, 12)],
    ),
    "cpp": (
        "a.cpp",
        (
            "namespace a::b {\n// Doc.\ntemplate <class T>\nT& pick(T& x) {\n  return x;\n}\n"
            "class Shop {\n public:\n  ~Shop() {}\n  bool operator==(int o) { return true; }\n};\n"
            "}  // namespace\nvoid Shop::close() {\n}\n"
        ),
        [
            ("a.b", 1, 1),
            ("a.b.pick", 2, 6),
            ("a.b.Shop", 7, 8),
            ("a.b.Shop.~Shop", 9, 9),
            ("a.b.Shop.operator==", 10, 12),
            ("Shop.close", 13, 14),
        ],
    ),
    "csharp": (
        "A.cs",
        (
            "using System;\nnamespace A.B\n{\n  [Serializable]\n  public class Shop\n  {\n"
            "    public int Size { get; set; }\n\n    /// <summary>Close.</summary>\n    [Fact]\n"
            "    public void Close<T>()\n    {\n    }\n  }\n}\n"
        ),
        [("", 1, 1), ("A.B", 2, 3), ("A.B.Shop", 4, 7), ("A.B.Shop.Close", 9, 15)],
    ),
    "ruby": (
        "a.rb",
        (
            "require 'x'\n\n# Doc.\nclass A::Shop < Base\n  # Close.\n  def close\n    1\n  end\n\n"
            "  def self.open?\n  end\nend\n"
        ),
        [("", 1, 1), ("A.Shop", 3, 4), ("A.Shop.close", 5, 8), ("A.Shop.open?", 10, 12)],
    ),
}


@pytest.mark.parametrize(("path", "text", "expected"), CASES.values(), ids=CASES.keys())
def test_every_language_is_cut_at_its_definitions(
    path: str, text: str, expected: list[tuple[str, int, int]]
) -> None:
    assert outline_of(path, text) == expected


def test_a_long_function_is_cut_and_every_piece_has_its_lines() -> None:
    text = "def long():\n" + "".join(f"    x{n} = {n}\n" for n in range(60))
    assert outline_of("a.py", text, max_tokens=60) == [
        ("long", 1, 19),
        ("long#2", 20, 39),
        ("long#3", 40, 52),
        ("long#4", 53, 61),
    ]


def test_a_short_function_keeps_the_functions_inside_it() -> None:
    text = "def deco(f):\n    def wrapper():\n        return f()\n    return wrapper\n"
    assert outline_of("a.py", text) == [("deco", 1, 4)]


def test_a_long_function_is_opened_and_its_short_tail_goes_along() -> None:
    inner = "    def wrapper():\n" + "        step(a, b)\n" * 6
    text = "def deco(f):\n    check(f)\n" + inner + inner.replace("wrapper", "other")
    assert outline_of("a.py", text + "    return wrapper\n", max_tokens=60) == [
        ("deco", 1, 2),
        ("deco.wrapper", 3, 9),
        ("deco.other", 10, 17),
    ]


def test_syntax_errors_lose_nothing_and_spare_what_is_right() -> None:
    text = "def good():\n    return 1\n\ndef bad():\n    return 1 +\n\ndef fine():\n    return 2\n"
    chunks = chunks_of("a.py", text)
    said = "\n".join(chunk.text for chunk in chunks)
    assert all(line in said for line in text.split("\n"))
    assert {"good", "fine"} <= {chunk.anchor for chunk in chunks}


def test_a_header_is_read_as_what_it_holds() -> None:
    assert {c.language for c in chunks_of("a.h", "int f(void);\n")} == {"c"}
    assert {c.language for c in chunks_of("a.h", "class A {\n};\n")} == {"cpp"}


def test_a_script_without_a_suffix_is_known_by_its_first_line() -> None:
    text = "#!/usr/bin/env python3\ndef main():\n    pass\n"
    assert outline_of("bin/run", text) == [("main", 1, 3)]


def test_a_language_without_a_grammar_is_code_cut_by_paragraph() -> None:
    (chunk,) = chunks_of("a.sql", "Title words\n\nselect 1;\n")
    assert (chunk.kind, chunk.language, chunk.title, chunk.anchor) == ("code", "sql", "a.sql", "1")
