"""Ontologies that are refused: with one line that names the place, whatever the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.errors import InvalidConfiguration, InvalidOntology
from knowledge.graph.ontology.differences import differences
from knowledge.graph.ontology.parsing import parse_ontology
from knowledge.graph.ontology.soundness import flaws
from knowledge.graph.ontology.writing import format_ontology
from tests.graph.ontologies import EXTENDING, HEAD, compositions, parse, predicates

REFUSED = {
    "empty": ("", 1, "the ontology is empty"),
    "not a mapping": ("- a\n", 1, "the ontology must be a mapping"),
    "not YAML": ("name: a\nversion: [1\n", 3, "not valid YAML"),
    "two documents": (HEAD + "---\n" + HEAD, 3, "not valid YAML"),
    "control character": ("name: a\nversion: \x07\n", 2, "U+0007 is not allowed"),
    "escape out of range": ('name: a\nversion: "\\U00110000"\n', 2, "out of range"),
    "anchor": (HEAD + "predicates:\n  A: &a {}\n", 4, "anchors and aliases are not allowed"),
    "alias bomb": (HEAD + "predicates: *a\n", 3, "anchors and aliases are not allowed"),
    "nested without end": (HEAD + "predicates: " + "[" * 5_000, 3, "nested deeper than"),
    "too large": (HEAD + "#" * 256 * 1024, 1, "at most 262,144 are allowed"),
    "python tag": (HEAD + "closed: !!python/name:os.system x\n", 3, "closed must be true or false"),
    "unknown key": (HEAD + "owner: me\n", 3, "unknown key 'owner' of the ontology; valid: name"),
    "merge key": (predicates("A:", "  <<: {}"), 5, "a key of predicate A must be a string"),
    "key twice": (HEAD + "name: b\n", 3, "'name' is given twice in the ontology"),
    "no version": ("name: acme\npredicates: {A: {}}\n", 1, "the ontology lacks version"),
    "name not a slug": ("name: Acme Corp\nversion: 1\n", 1, "name 'Acme Corp' is not valid"),
    "name a number": ("name: 7\nversion: 1\n", 1, "put it in quotes"),
    "name taken": ("name: default\nversion: 1\n", 1, "choose another"),
    "version zero": ("name: acme\nversion: 0\n", 2, "version must be an integer from 1"),
    "version negative": ("name: acme\nversion: -1\n", 2, "version must be an integer from 1"),
    "version octal": ("name: acme\nversion: 017\n", 2, "version must be an integer from 1"),
    "version text": ("name: acme\nversion: '1'\n", 2, "version must be an integer from 1"),
    "version boolean": ("name: acme\nversion: true\n", 2, "version must be an integer from 1"),
    "closed not boolean": (HEAD + "closed: yes\n", 3, "closed must be true or false; found 'yes'"),
    "extends unknown": (HEAD + "extends: other\n", 3, "no ontology 'other' to extend; valid: defau"),
    "no predicates": (HEAD, 1, "has no predicate"),
    "predicates a list": (HEAD + "predicates: [A]\n", 3, "predicates must be a mapping"),
    "predicate twice": (predicates("A: {}", "B: {}", "A: {}"), 6, "'A' is given twice"),
    "predicate without body": (predicates("A:"), 4, "write {} for none"),
    "predicate lower-case": (predicates("A: {}", "depends_on: {}"), 5, "not UPPER_SNAKE_CASE"),
    "predicate two underscores": (predicates("A__B: {}"), 4, "not UPPER_SNAKE_CASE"),
    "predicate too long": (predicates("A" * 65 + ": {}"), 4, "at most 64 characters"),
    "predicate read as boolean": (predicates("ON: {}"), 4, "put it in quotes"),
    "predicate key unknown": (predicates("A:", "  inverted: B"), 5, "unknown key 'inverted' of p"),
    "domain unknown": (predicates("A:", "  domain: kitchen"), 5, "domain 'kitchen' is not known"),
    "types not a list": (predicates("A:", "  subject_types: a"), 5, "must be a list"),
    "types empty": (predicates("A:", "  object_types: []"), 5, "leave the key out"),
    "type upper-case": (predicates("A:", "  object_types:", "  - a", "  - B"), 7, "not a type name"),
    "type a number": (predicates("A:", "  object_types: [1]"), 5, "put it in quotes"),
    "type twice": (predicates("A:", "  object_types: [a, a]"), 5, "listed twice"),
    "functional not boolean": (predicates("A:", "  functional: 1"), 5, "must be true or false"),
    "inverse malformed": (predicates("A:", "  inverse: b"), 5, "not UPPER_SNAKE_CASE"),
    "inverse unknown": (predicates("A:", "  inverse: B"), 5, "there is no predicate B; add it"),
    "inverse is an alias": (
        predicates("A:", "  inverse: BB", "B: {aliases: [BB], inverse: A}"),
        5,
        "BB is an alias, name the predicate B",
    ),
    "inverse one-sided": (
        predicates("A:", "  domain: code", "  inverse: B", "B: {}"),
        6,
        "A has the inverse B, but B has none: give B `inverse: A`",
    ),
    "inverse of another": (
        predicates("A: {inverse: B}", "B:", "  inverse: C", "C: {inverse: B}"),
        6,
        "but B has the inverse C",
    ),
    "inverse of another domain": (
        predicates("A: {inverse: B, domain: code}", "B: {inverse: A}"),
        4,
        "must be of one domain",
    ),
    "inverse with other types": (
        predicates("A: {inverse: B, subject_types: [a]}", "B: {inverse: A, object_types: [b]}"),
        4,
        "the subject_types of A must be the object_types of its inverse B",
    ),
    "symmetric with two types": (
        predicates("A: {inverse: A, subject_types: [a], object_types: [b]}"),
        4,
        "must be the object_types of its inverse A",
    ),
    "inverse not transitive": (
        predicates("A: {inverse: B, transitive: true}", "B: {inverse: A}"),
        4,
        "must both be transitive",
    ),
    "alias malformed": (predicates("A:", "  aliases: [is a]"), 5, "not UPPER_SNAKE_CASE"),
    "alias twice": (predicates("A: {aliases: [B, B]}"), 4, "B is listed twice in aliases"),
    "alias of itself": (predicates("A: {aliases: [A]}"), 4, "alias A of A is the name of a pred"),
    "alias is a predicate": (predicates("B: {}", "A: {aliases: [B]}"), 5, "is the name of a pred"),
    "alias of two": (predicates("A: {aliases: [X]}", "B: {aliases: [X]}"), 5, "also an alias of A"),
    "alias taken by the base": (
        EXTENDING + "predicates:\n  GLUES: {aliases: [CALLS]}\n",
        5,
        "alias CALLS of GLUES is the name of a predicate",
    ),
    "predicate is an alias of the base": (
        EXTENDING + "predicates:\n  HOSTED_ON: {}\n",
        5,
        "alias HOSTED_ON of RUNS_ON is the name of a predicate",
    ),
    "transitive between types": (
        predicates("A:", "  subject_types: [a]", "  object_types: [b]", "  transitive: true"),
        7,
        "none of its object_types can be a subject",
    ),
    "functional and transitive": (
        predicates("A: {functional: true, transitive: true}"),
        4,
        "cannot be both functional and transitive",
    ),
    "composition incomplete": (
        compositions("{name: one, first: A, then: B}"),
        8,
        "a composition lacks gives",
    ),
    "composition name": (
        compositions("{name: One, first: A, then: B, gives: C}"),
        8,
        "composition name 'One' is not lower_snake_case",
    ),
    "composition name twice": (
        compositions(
            "{name: one, first: A, then: B, gives: C}", "{name: one, first: B, then: B, gives: C}"
        ),
        9,
        "composition one is given twice",
    ),
    "composition twice": (
        compositions(
            "{name: one, first: A, then: B, gives: C}", "{name: two, first: A, then: B, gives: C}"
        ),
        9,
        "composition two is the same rule as one",
    ),
    "composition step unknown": (
        compositions("name: one\n    first: A\n    then: X\n    gives: C"),
        10,
        "composition one, then: there is no predicate X",
    ),
    "composition is transitivity": (
        compositions("{name: one, first: A, then: A, gives: A}"),
        8,
        "give A `transitive: true` instead",
    ),
    "composition never meets": (
        compositions(
            "name: one\n    first: A\n    then: B\n    gives: A",
            given=("A: {object_types: [a]}", "B: {subject_types: [b]}"),
        ),
        9,
        "no object type of A is a subject type of B",
    ),
    "composition gives another subject": (
        compositions(
            "{name: one, first: A, then: B, gives: C}",
            given=("A: {subject_types: [a]}", "B: {}", "C: {subject_types: [c]}"),
        ),
        8,
        "no subject type of A is a subject type of C",
    ),
    "composition gives another object": (
        compositions(
            "{name: one, first: A, then: B, gives: C}",
            given=("A: {}", "B: {object_types: [b]}", "C: {object_types: [c]}"),
        ),
        8,
        "no object type of B is an object type of C",
    ),
    "remove without extends": (predicates("A: {}") + "remove: [A]\n", 5, "it has none"),
    "remove unknown": (EXTENDING + "remove:\n- TRIED\n- NOPE\n", 6, "there is no predicate or com"),
    "remove twice": (EXTENDING + "remove: [TRIED, TRIED]\n", 4, "TRIED is removed twice"),
    "removed and given": (
        EXTENDING + "remove: [TRIED]\npredicates:\n  TRIED: {}\n",
        6,
        "TRIED is both removed and given",
    ),
    "remove one of a pair": (
        EXTENDING + "remove:\n- TRIED\n- CALLS\n",
        6,
        "CALLS cannot be removed: inverse of CALLED_BY",
    ),
    "remove a premise": (
        EXTENDING + "remove: [CONSUMES]\n",
        4,
        "CONSUMES cannot be removed: composition dependency_through_interface",
    ),
    "override loses the inverse": (
        EXTENDING + "predicates:\n  OWNED_BY: {functional: true}\n",
        5,
        "OWNS has the inverse OWNED_BY, but OWNED_BY has none",
    ),
    "too many predicates": (
        predicates(*(f"P{number}: {{}}" for number in range(2_001))),
        1,
        "has 2,001 predicates; at most 2,000",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_document_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InvalidOntology) as refused:
        parse(text)
    assert refused.value.message.startswith(f"acme.yaml:{line}: ")
    assert message in refused.value.message
    assert len(refused.value.message.splitlines()) == 1
    assert refused.value.facts == {"file": "acme.yaml", "line": line}


def test_extending_is_refused_where_there_is_nothing_to_extend() -> None:
    with pytest.raises(InvalidConfiguration, match=r"^a:3: there is no ontology to extend here"):
        parse_ontology(EXTENDING, where="a")


WORDS = st.sampled_from(
    re.split(
        r"\s+",
        """name version extends closed remove predicates compositions domain functional transitive
        inverse aliases subject_types object_types first then gives default code CALLS A B TRIED
        1 0 true yes null ~ ON << = !!int !!set !!python/object:a &a *a | > ? - : { } [ ] , # ' "
        % @ "\\U00110000" "\\uD800" %YAML --- ... {} []""",
    )
)
GAPS = st.sampled_from(["", " ", "  ", "\n", "\n  ", "\n    ", ": ", "\n- ", "\t", "\u2028", "\r"])
DOCUMENTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.tuples(WORDS, GAPS).map("".join), max_size=40).map("".join),
    st.lists(st.tuples(WORDS, GAPS).map("".join), max_size=20).map(
        lambda parts: HEAD + "predicates:\n  " + "".join(parts)
    ),
)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(DOCUMENTS)
def test_arbitrary_text_is_an_ontology_or_refused_in_one_line(text: str) -> None:
    try:
        found = parse(text)
    except InvalidOntology as refused:
        assert re.match(r"acme\.yaml:[1-9]\d*: \S", refused.message)
        assert len(refused.message.splitlines()) == 1
        assert len(refused.message) < 500
    else:
        assert list(flaws(found.predicates, found.compositions)) == []


NAMES = ("A", "B", "C")
TYPES = st.lists(st.sampled_from(["a", "b"]), unique=True, min_size=1, max_size=2)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "functional": st.booleans(),
        "transitive": st.booleans(),
        "inverse": st.sampled_from(NAMES),
        "subject_types": TYPES,
        "object_types": TYPES,
        "aliases": st.just(["X"]),
    },
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.fixed_dictionaries(dict.fromkeys(NAMES, BODIES)))
def test_what_parses_is_sound_and_reads_back_equal(bodies: dict[str, dict[str, object]]) -> None:
    text = predicates(*(f"{name}: {_flow(body)}" for name, body in bodies.items()))
    try:
        found = parse(text)
    except InvalidOntology:
        return
    for each in found.predicates.values():
        assert not (each.functional and each.transitive)
        if each.inverse:
            inverse = found.predicates[each.inverse]
            assert inverse.inverse == each.name
            assert set(inverse.subject_types) == set(each.object_types)
    assert parse_ontology(format_ontology(found), where="again") == found
    assert differences(found, found) == ()


def _flow(body: dict[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {_plain(value)}" for key, value in body.items()) + "}"


def _plain(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
