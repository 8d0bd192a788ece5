"""Ontologies: what a document means, what a statement violates, what a new version changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from knowledge.graph.ontology.defaults import default_ontology
from knowledge.graph.ontology.differences import differences
from knowledge.graph.ontology.model import Composition, Predicate, Rules
from knowledge.graph.ontology.parsing import parse_ontology
from knowledge.graph.ontology.soundness import flaws
from knowledge.graph.ontology.violations import violations
from knowledge.graph.ontology.writing import format_ontology
from knowledge.model.fact import Domain
from tests.graph.ontologies import EXTENDING, compositions, parse, predicates

# --- what a document means ---------------------------------------------------------------


def test_every_key_of_a_predicate_is_read() -> None:
    found = parse(
        predicates(
            "ROUTES_TO:",
            "  domain: architecture",
            "  subject_types: [gateway]",
            "  object_types: [service, job]",
            "  functional: true",
            "  inverse: ROUTED_FROM",
            "  aliases: [FORWARDS_TO]",
            "ROUTED_FROM: {domain: architecture, subject_types: [job, service],"
            " object_types: [gateway], inverse: ROUTES_TO}",
            "NEAR: {inverse: NEAR, transitive: true}",
        )
    )
    assert found.identity == "acme@1"
    assert not found.closed
    assert found.predicates["ROUTES_TO"] == Predicate(
        name="ROUTES_TO",
        domain=Domain.ARCHITECTURE,
        subject_types=("gateway",),
        object_types=("service", "job"),
        functional=True,
        inverse="ROUTED_FROM",
        aliases=("FORWARDS_TO",),
    )
    assert found.predicates["NEAR"] == Predicate(name="NEAR", inverse="NEAR", transitive=True)


def test_an_alias_finds_its_predicate_and_an_unknown_name_stays() -> None:
    found = parse(predicates("USES: {aliases: [EMPLOYS, UTILIZES]}"))
    assert found.find("EMPLOYS") is found.find("USES") is found.predicates["USES"]
    assert found.canonical("UTILIZES") == found.canonical("USES") == "USES"
    assert found.find("LIKES") is None
    assert found.canonical("LIKES") == "LIKES"


def test_the_rules_of_a_predicate_name_every_part_it_plays() -> None:
    found = parse(
        compositions(
            "{name: one, first: A, then: B, gives: C}",
            "{name: two, first: B, then: A, gives: A}",
            given=("A: {transitive: true, aliases: [AA]}", "B: {inverse: C}", "C: {inverse: B}"),
        )
    )
    one, two = Composition("one", "A", "B", "C"), Composition("two", "B", "A", "A")
    assert found.rules_of("A") == found.rules_of("AA") == Rules(None, True, (one,), (two,))
    assert found.rules_of("B") == Rules("C", False, (two,), (one,))
    assert found.rules_of("C") == Rules("B", False, (), ())
    assert not found.rules_of("UNKNOWN")


def test_a_document_that_extends_replaces_adds_and_removes() -> None:
    base = default_ontology()
    found = parse(
        EXTENDING + "closed: true\nremove: [TRIED, member_of_the_whole]\n"
        "predicates:\n  PREFERS: {functional: true}\n  BARKS_AT: {}\n"
        "compositions:\n"
        "  - {name: location_of_the_host, first: RUNS_ON, then: PART_OF, gives: RUNS_ON}\n"
        "  - {name: barking, first: BARKS_AT, then: PART_OF, gives: BARKS_AT}\n"
    )
    assert found.closed
    assert set(found.predicates) == {*base.predicates, "BARKS_AT"} - {"TRIED"}
    assert found.predicates["PREFERS"] == Predicate(name="PREFERS", functional=True)
    rules = {rule.name: rule for rule in found.compositions}
    assert set(rules) == {*(rule.name for rule in base.compositions), "barking"} - {
        "member_of_the_whole"
    }
    assert rules["location_of_the_host"].then == "PART_OF"
    assert base.predicates["PREFERS"].functional is False


def test_an_extending_document_needs_no_predicates_and_takes_over_closed() -> None:
    base = parse_ontology("name: base\nversion: 1\nclosed: true\npredicates: {A: {}}", where="b")
    found = parse_ontology("name: on-top\nversion: 7\nextends: base", where="t", base=base)
    assert (found.identity, found.closed) == ("on-top@7", True)
    assert found.predicates == base.predicates


def test_a_document_that_stands_alone_holds_nothing_of_the_default() -> None:
    assert set(parse(predicates("A: {}")).predicates) == {"A"}


def test_the_predicates_of_an_ontology_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        default_ontology().predicates["NEW"] = Predicate("NEW")  # type: ignore[index]


def test_an_ontology_written_out_reads_back_equal_without_what_it_extended() -> None:
    found = parse(
        EXTENDING + "closed: true\npredicates:\n  'ON':\n    inverse: 'ON'\n"
        "    subject_types: [a, b]\n    object_types: [a, b]\n"
    )
    assert parse_ontology(format_ontology(found), where="stored") == found
    assert parse_ontology(format_ontology(default_ontology()), where="d") == default_ontology()


# --- the packaged ontology and the documentation -----------------------------------------


def test_the_default_is_open_sound_and_covers_every_domain() -> None:
    found = default_ontology()
    assert (found.identity, found.closed) == ("default@1", False)
    assert list(flaws(found.predicates, found.compositions)) == []
    assert {each.domain for each in found.predicates.values()} >= set(Domain)
    assert default_ontology() is found


def test_inverses_of_the_default_are_mutual_and_mirror_their_types() -> None:
    found = default_ontology()
    pairs = [(each, found.find(each.inverse)) for each in found.predicates.values() if each.inverse]
    assert len(pairs) > 20
    for one, other in pairs:
        assert other is not None and other.inverse == one.name
        assert set(one.subject_types) == set(other.object_types)


def test_the_default_ends_facts_only_where_a_second_value_replaces_the_first() -> None:
    functional = {each.name for each in default_ontology().predicates.values() if each.functional}
    assert functional >= {"OWNED_BY", "REPORTS_TO", "USES_MESSAGE_BROKER"}
    assert functional.isdisjoint({"USES", "DEPENDS_ON", "OWNS", "MEMBER_OF", "RUNS_ON", "CALLS"})


def test_the_example_of_the_documentation_parses() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ontology.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 1
    found = parse_ontology(examples[0], where="docs/ontology.md", base=default_ontology())
    assert (found.identity, found.closed) == ("acme@3", True)
    assert found.find("FORWARDS_TO") == found.predicates["ROUTES_TO"]
    assert found.find("USES_PRIMARY_DATABASE") is None
    assert found.find("DEPENDS_ON") is not None


# --- one statement against an ontology ---------------------------------------------------

CHECKED = predicates(
    "ROUTES_TO: {domain: architecture, subject_types: [gateway, proxy], object_types: [service],"
    " aliases: [FORWARDS_TO]}",
    "LIKES: {}",
)


def check(
    predicate: str,
    domain: Domain = Domain.ARCHITECTURE,
    subject_type: str | None = None,
    object_type: str | None = None,
) -> tuple[str, ...]:
    return violations(
        parse(CHECKED),
        predicate=predicate,
        domain=domain,
        subject_type=subject_type,
        object_type=object_type,
    )


def test_a_statement_that_fits_violates_nothing() -> None:
    assert check("ROUTES_TO", subject_type="proxy", object_type="service") == ()
    assert check("FORWARDS_TO", subject_type="gateway") == ()
    assert check("ROUTES_TO") == ()
    assert check("LIKES", Domain.CUSTOMER, "dog", "cat") == ()


def test_an_unknown_predicate_is_the_only_violation_of_its_statement() -> None:
    assert check("BITES", subject_type="dog") == (
        "unknown_predicate: acme@1 has no predicate BITES",
    )


def test_every_violation_of_a_statement_is_named() -> None:
    assert check("FORWARDS_TO", Domain.CODE, "service", "gateway") == (
        "wrong_domain: ROUTES_TO is of the domain architecture, not code",
        "subject_type: the subject of ROUTES_TO is a service; allowed: gateway, proxy",
        "object_type: the object of ROUTES_TO is a gateway; allowed: service",
    )


# --- what a new version changes ----------------------------------------------------------


def test_the_differences_of_two_versions_are_listed() -> None:
    old = parse(
        compositions(
            "{name: gone, first: A, then: B, gives: B}",
            "{name: kept, first: A, then: A, gives: B}",
            "{name: moved, first: B, then: A, gives: B}",
            given=(
                "A: {domain: code, subject_types: [a]}",
                "B: {functional: true, aliases: [BB]}",
                "GONE: {}",
                "RENAMED: {}",
                "SAME: {object_types: [a, b]}",
            ),
        )
    )
    new = parse(
        "closed: true\n"
        + compositions(
            "{name: moved, first: B, then: SAME, gives: B}",
            "{name: kept, first: A, then: A, gives: B}",
            "{name: new, first: A, then: B, gives: A}",
            given=(
                "SAME: {object_types: [b, a]}",
                "A: {functional: true, subject_types: [a, b], aliases: [RENAMED]}",
                "B: {transitive: true, inverse: B}",
                "NEW: {}",
            ),
        )
    )
    assert differences(old, new) == (
        "now closed: unknown predicates are refused",
        "A domain: code → any",
        "A now functional: a later object ends the one before it",
        "A subject types: a → a, b",
        "A aliases: none → RENAMED",
        "B no longer functional: several objects hold at once",
        "B now transitive",
        "B inverse: none → B",
        "B aliases: BB → none",
        "GONE removed",
        "NEW added",
        "RENAMED removed: now an alias of A",
        "composition gone removed: A then B gives B",
        "composition moved: B then A gives B → B then SAME gives B",
        "composition new added: A then B gives A",
    )
    assert differences(new, old)[0] == "now open: unknown predicates are kept and reported"


def test_a_new_version_that_changes_nothing_has_no_differences() -> None:
    old = parse(CHECKED)
    assert differences(old, parse(CHECKED.replace("version: 1", "version: 2"))) == ()
