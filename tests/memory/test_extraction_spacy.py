"""Facts by grammar: how many of them are right, what is dropped, what is left behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from knowledge.graph.ontology.defaults import default_ontology
from knowledge.memory.extraction.extractor import Extraction, Role, Turn
from knowledge.memory.extraction.prose import MAX_PASSAGE_CHARS, MAX_TURN_CHARS, passages
from knowledge.memory.extraction.spacy_extractor import SpacyExtractor
from tests.memory.reachable import reachable

SENTENCES: dict[str, list[str]] = {
    # What a reader would note down of each sentence: "subject | PREDICATE | object".
    "The invoice service depends on LedgerStore.": ["invoice service | DEPENDS_ON | LedgerStore"],
    "LedgerStore is owned by the billing team.": ["LedgerStore | OWNED_BY | billing team"],
    "We decided to use Valkey for rate limiting.": [
        "user | DECIDED_TO_USE | Valkey",
        "Valkey | USED_FOR | rate limiting",
    ],
    "Nightly builds run on Hetzner.": ["Nightly builds | RUNS_ON | Hetzner"],
    "The shipping module calls `RateTable.lookup()` and caches results in Redis.": [
        "shipping module | CALLS | RateTable.lookup()",
        "results | CACHED_IN | Redis",
    ],
    "CancelBooking publishes BookingCancelled to the bookings topic.": [
        "CancelBooking | PUBLISHES | BookingCancelled",
        "CancelBooking | PUBLISHES_TO | bookings topic",
    ],
    "BookingStore implements IBookingStore.": ["BookingStore | IMPLEMENTS | IBookingStore"],
    "PdfRenderer inherits from BaseRenderer.": ["PdfRenderer | INHERITS_FROM | BaseRenderer"],
    "I prefer Ruff over Flake8.": ["user | PREFERS | Ruff"],
    "Priya leads the payments team.": ["Priya | LEADS | payments team"],
    "The payments team is led by Priya.": ["payments team | LED_BY | Priya"],
    "Tom reports to Priya.": ["Tom | REPORTS_TO | Priya"],
    "Tom is a member of the platform guild.": ["Tom | MEMBER_OF | platform guild"],
    "The owner of search-api is the discovery team.": ["search-api | OWNED_BY | discovery team"],
    "search-api's primary database is OpenSearch.": [
        "search-api | USES_PRIMARY_DATABASE | OpenSearch"
    ],
    "Our message broker is RabbitMQ.": ["message broker | IS | RabbitMQ"],
    "The v1 endpoint is deprecated.": ["v1 endpoint | HAS_STATUS | deprecated"],
    "We replaced Webpack with Vite in March 2025.": ["Vite | REPLACES | Webpack"],
    "Since 2023 the mobile team uses Flutter.": ["mobile team | USES | Flutter"],
    "The importer writes to S3 and reads from the staging bucket.": [
        "importer | WRITES_TO | S3",
        "importer | READS_FROM | staging bucket",
    ],
    "Logs are shipped to Loki by Promtail.": [
        "Logs | SHIPPED_TO | Loki",
        "Logs | SHIPPED_BY | Promtail",
    ],
    "The gateway, which runs on Envoy, connects to auth-service.": [
        "gateway | RUNS_ON | Envoy",
        "gateway | CONNECTS_TO | auth-service",
    ],
    "The incident was caused by an expired certificate.": [
        "incident | CAUSED_BY | expired certificate"
    ],
    "The migration failed with a DeadlockError.": ["migration | FAILED_WITH | DeadlockError"],
    "The `users` table is part of the identity schema.": ["users | PART_OF | identity schema"],
    "The CLI is written in Rust.": ["CLI | WRITTEN_IN | Rust"],
    "Alertmanager notifies the on-call engineer through PagerDuty.": [
        "Alertmanager | NOTIFIES | on-call engineer",
        "Alertmanager | NOTIFIES_THROUGH | PagerDuty",
    ],
    "Terraform provisions the staging cluster.": ["Terraform | PROVISIONS | staging cluster"],
    "`src/app/main.py` imports `settings.py`.": ["src/app/main.py | IMPORTS | settings.py"],
    "Dana is responsible for the release process.": [
        "Dana | RESPONSIBLE_FOR | release process"
    ],
    "The report job is triggered by Airflow every morning.": [
        "report job | TRIGGERED_BY | Airflow"
    ],
    "We migrated the wiki from Confluence to Outline.": [
        "user | MIGRATES_FROM | Confluence",
        "user | MIGRATES_TO | Outline",
    ],
    "The web client talks to the API over gRPC.": ["web client | TALKS_TO | API"],
    "Contoso is a customer of the enterprise plan.": [
        "Contoso | CUSTOMER_OF | enterprise plan"
    ],
    "Feature flags are stored in Unleash.": ["Feature flags | STORED_IN | Unleash"],
    "ADR-12 supersedes ADR-7.": ["ADR-12 | REPLACES | ADR-7"],
    "The scheduler and the worker share a Redis queue.": [
        "scheduler | SHARES | Redis queue",
        "worker | SHARES | Redis queue",
    ],
    "I use NixOS on my laptop.": ["user | USES | NixOS"],
    "Every pull request requires two approvals.": ["pull request | REQUIRES | two approvals"],
    "Postgres is hosted on a dedicated VM.": ["Postgres | RUNS_ON | dedicated VM"],
    "The dashboard shows latency by region.": ["dashboard | SHOWS | latency"],
    "Marta fixed the flaky login test yesterday.": ["Marta | FIXES | flaky login test"],
    # and of these nothing
    "Should we move the cache to Redis?": [],
    "Does search-api use OpenSearch?": [],
    "If LedgerStore fails, the invoice service falls back to the replica.": [],
    "We might switch to Valkey next year.": [],
    "The invoice service does not depend on Kafka.": [],
    "search-api no longer uses Solr.": [],
    "It depends on the weather.": [],
    "I think the gateway runs on Nginx.": [],
    "We want to replace Webpack with Vite.": [],
    "You could add an index to the table.": [],
    "Thanks, that works.": [],
    "Let me check the logs.": [],
}  # fmt: skip

MIN_PRECISION = 0.8
MIN_RECALL = 0.6


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor()


def extract(
    extractor: SpacyExtractor, text: str, *names: str, role: Role = "user", at: datetime | None = None
) -> Extraction:  # fmt: skip
    return asyncio.run(extractor.extract([Turn(role, text, at)], names, default_ontology()))


def lines(extraction: Extraction) -> list[str]:
    return [f"{each.subject} | {each.predicate} | {each.object}" for each in extraction.triples]


def test_at_least_four_of_five_facts_are_right(extractor: SpacyExtractor) -> None:
    found = {text: set(lines(extract(extractor, text))) for text in SENTENCES}
    right = sum(len(found[text] & set(gold)) for text, gold in SENTENCES.items())
    wrong = {line for text, gold in SENTENCES.items() for line in found[text] - set(gold)}
    missed = {line for text, gold in SENTENCES.items() for line in set(gold) - found[text]}
    precision = right / (right + len(wrong))
    recall = right / (right + len(missed))
    report = f"precision {precision:.2f}, recall {recall:.2f}\nwrong {wrong}\nmissed {missed}"
    assert precision >= MIN_PRECISION, report
    assert recall >= MIN_RECALL, report


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Does search-api use OpenSearch?", "question"),
        ("search-api does not use OpenSearch.", "negation"),
        ("search-api never uses OpenSearch.", "negation"),
        ("We stopped using OpenSearch.", "negation"),
        ("No service uses OpenSearch.", "negation"),
        ("If it rains, search-api uses OpenSearch.", "hypothetical"),
        ("search-api might use OpenSearch.", "hypothetical"),
        ("search-api will use OpenSearch.", "hypothetical"),
        ("We want to use OpenSearch.", "hypothetical"),
        ("Let's use OpenSearch.", "hypothetical"),
        ("I believe search-api uses OpenSearch.", "hypothetical"),
        ("Maybe search-api uses OpenSearch.", "hypothetical"),
        ("It uses OpenSearch.", "pronoun"),
        ("They use OpenSearch.", "pronoun"),
    ],
)
def test_what_asserts_nothing_is_dropped_and_counted(
    extractor: SpacyExtractor, text: str, reason: str
) -> None:
    extraction = extract(extractor, text)
    assert extraction.triples == []
    assert extraction.dropped[reason] >= 1


def test_the_first_person_is_the_user_only_in_turns_of_the_user(extractor: SpacyExtractor) -> None:
    [triple] = extract(extractor, "I use pnpm.").triples
    assert (triple.subject, triple.subject_type) == ("user", "person")
    said = extract(extractor, "I use pnpm.", role="assistant")
    assert (said.triples, said.dropped) == ([], {"pronoun": 1})


def test_turns_of_tools_and_of_the_system_are_not_read(extractor: SpacyExtractor) -> None:
    roles: tuple[Role, ...] = ("tool", "system")
    for role in roles:
        assert extract(extractor, "LedgerStore uses Redis.", role=role).triples == []


def test_a_mention_is_written_as_the_known_name(extractor: SpacyExtractor) -> None:
    text = "The Invoice Service depends on the ledger store. The ledger store uses redis."
    assert lines(extract(extractor, text, "invoice service", "LEDGER store", "Redis")) == [
        "invoice service | DEPENDS_ON | LEDGER store",
        "LEDGER store | USES | Redis",
    ]


def test_a_date_says_since_when(extractor: SpacyExtractor) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    [triple] = extract(extractor, "search-api uses OpenSearch since May 2024.", at=now).triples
    assert triple.valid_from is not None
    assert (triple.valid_from.at, triple.valid_from.precision) == (
        datetime(2024, 5, 1, tzinfo=UTC),
        "month",
    )
    [undated] = extract(extractor, "search-api uses OpenSearch in production.").triples[:1]
    assert undated.valid_from is None


def test_code_traces_logs_and_quotations_are_not_read(extractor: SpacyExtractor) -> None:
    text = """\
LedgerStore uses Redis.
```python
# OrderService uses Kafka.
```
    the indented OrderService uses Kafka
> OrderService uses Kafka.
Traceback (most recent call last):
  File "a.py", line 1, in <module>
KafkaError: OrderService uses Kafka
2024-05-01 12:00:00 INFO OrderService uses Kafka
| OrderService | uses | Kafka |
- **search-api** uses [OpenSearch](https://example.com/x)."""
    assert lines(extract(extractor, text)) == [
        "LedgerStore | USES | Redis",
        "search-api | USES | OpenSearch",
    ]


def test_a_fact_told_twice_is_found_once_with_its_greatest_confidence(
    extractor: SpacyExtractor,
) -> None:
    [triple] = extract(extractor, "LedgerStore uses Redis. LedgerStore uses Redis.").triples
    assert 0.6 <= triple.confidence <= 1


def test_a_message_of_any_size_is_read_in_small_passages() -> None:
    text = "LedgerStore uses Redis. " * 5_000 + "x" * 50_000
    found = list(passages(text))
    assert max(map(len, found)) <= MAX_PASSAGE_CHARS
    assert sum(map(len, found)) <= MAX_TURN_CHARS


@pytest.mark.parametrize("text", ["", " ", "\x00\x07", "🙂" * 500, "a" * 30_000, "(" * 5_000, "`" * 5_000, "a.b." * 5_000, "a-b-" * 5_000, "a/" * 9_000, "!\u202e\ud800?"])  # fmt: skip
def test_hostile_text_gives_nothing_and_takes_no_time(extractor: SpacyExtractor, text: str) -> None:
    extract(extractor, "warm")
    started = time.process_time()
    assert extract(extractor, text).triples == []
    assert time.process_time() - started < 5


def test_the_event_loop_runs_on_while_turns_are_read(extractor: SpacyExtractor) -> None:
    turns: Sequence[Turn] = [Turn("user", " ".join(SENTENCES))] * 5

    async def longest_pause() -> float:
        """As a share of the time it takes: others share the machine."""
        task = asyncio.create_task(extractor.extract(turns, [], default_ontology()))
        longest, started = 0.0, time.perf_counter()
        last = started
        while not task.done():
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        return longest / (last - started)

    asyncio.run(extractor.extract(turns[:1], [], default_ontology()))
    assert asyncio.run(longest_pause()) < 0.2


def test_the_pipeline_keeps_no_word_of_what_it_read(extractor: SpacyExtractor) -> None:
    text = "The canarynoun77 service depends on CanaryStore. Two canarynouns have canaryworded it."
    extract(extractor, text)
    assert extractor._nlp is not None
    kept = " ".join(extractor._nlp.vocab.strings).casefold()
    for stem in ("canarynoun", "canarystore", "canaryword"):
        assert stem not in kept
        assert not reachable(extractor, stem)  # its lemmatizer keeps plurals and participles
