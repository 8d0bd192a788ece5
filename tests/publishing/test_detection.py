"""Code is told from prose."""

from __future__ import annotations

import pytest

from knowledge.publishing.chunking import looks_like_code

CODE = {
    "python": 'def area(w, h):\n    """Width times height."""\n    return w * h',
    "python method": "    def close(self) -> None:\n        self._file.close()",
    "python decorated": "@cache\ndef load(name: str) -> bytes:\n    ...",
    "python async": "async def get(url):\n    return await fetch(url)",
    "python class": "class Point(NamedTuple):\n    x: int\n    y: int",
    "python script": "import sys\nfrom os import path\n\nname = sys.argv[1]\nprint(path.join(name))",
    "python module": '"""What it does.\n\nAt length.\n"""\n\nimport re\n\n\ndef f():\n    pass',
    "javascript": "function area(w, h) {\n  return w * h;\n}",
    "javascript arrow": "const area = (w, h) => {\n  return w * h;\n};",
    "javascript async": "export default async function load() {\n  await go();\n}",
    "typescript": "export class Store<T> {\n  private items: T[] = [];\n}",
    "go": "func (s *Server) Run(ctx context.Context) error {\n\treturn nil\n}",
    "java": "public static int area(int w, int h) {\n    return w * h;\n}",
    "java documented": "/**\n * The area.\n */\n@Override\npublic int area() {\n    return 1;\n}",
    "rust": "pub fn area(w: u32, h: u32) -> u32 {\n    w * h\n}",
    "c": "static int\narea(int w, int h)\n{\n    return w * h;\n}",
    "cpp": "double Shape::area(double w) const {\n  return w;\n}",
    "csharp": "public async Task<int> Cancel(Guid id)\n{\n    return await store.Drop(id);\n}",
    "ruby": "def area(w, h)\n  w * h\nend",
}
PROSE = {
    "empty": "",
    "sentence": "The class of functions that return to their origin is small.",
    "abstract": (
        "We define a function f(x) = x + 1 and return to it in section 3; let x be in the "
        "class of all such functions (see [1, 2]); for each x we import a bound from Lemma 2."
    ),
    "several": (
        "If the patient returns, the treatment is repeated.\nFor all others, it ends.\n"
        "While this is common, it is not a rule."
    ),
    "turn": "Hey! Good to see you :) How have you been?",
    "question": "how to return a function from a function in python",
    "names": "def leppard\nclass of 1999",
    "list": "Bring:\n- water\n- bread\n- salt (a little)",
    "dialogue": "Anna: did you import it?\nBen: yes, with the class list.\nAnna: fine.",
    "markdown": (
        "# Usage\n\nCall it like this:\n\n```python\nimport os\n\ndef f():\n    return 1\n```\n"
    ),
    "public": "public opinion (static since May) turned.\nPrivate views did not.",
    "table": "1901 12 33.5\n1902 13 34.1\n1903 15 35.0",
}


@pytest.mark.parametrize("text", CODE.values(), ids=CODE.keys())
def test_a_function_or_class_is_code(text: str) -> None:
    assert looks_like_code(text)


@pytest.mark.parametrize("text", PROSE.values(), ids=PROSE.keys())
def test_prose_is_not_code(text: str) -> None:
    assert not looks_like_code(text)
