"""Data checks in dbt's vocabulary: YAML in, SELECTs of failing rows, outcomes out.

A check file lists models (named relations) with their tests::

    models:
      - name: chunks
        id_columns: [chunk_id]        # the only columns a sample of failing rows may show
        tests:
          - row_count: {min: 1}
          - expression:
              name: line_range_is_sane
              expression: line_start <= line_end
        columns:
          - name: kind
            tests:
              - not_null
              - accepted_values: {values: [document, code], severity: warn, warn_if: ">=10"}

======================  =======  ================================================================
test                    level    a failing row is
======================  =======  ================================================================
``not_null``            column   a row whose value is NULL
``unique``              column   one row for each value that occurs more than once
``accepted_values``     column   a row whose value is not NULL and not one of ``values``
``relationships``       column   a row whose value is not NULL and not in ``field`` of model ``to``
``freshness``           column   one row, when the newest value is older than ``max_age``, or none
``row_count``           model    one row, when the count is outside ``min`` to ``max``
``expression``          both     a row for which ``expression`` is false *or NULL*
======================  =======  ================================================================

``max_age`` is ``{count: 12, period: hour}`` (minute, hour or day). Every test also takes ``name``
(default: test, model and column joined by ``_``), ``description``, ``severity`` and thresholds.

``engine: parquet`` (the default) or ``engine: postgres`` at the top of a file says whose relations
it selects from, and so where it runs.

A singular check is a ``.sql`` file named after the check, one SELECT of failing rows. Comment lines
at its very top are its configuration, in YAML::

    -- description: No text is repeated more than 50 times.
    -- engine: parquet
    -- severity: warn
    -- model: chunks
    -- id_columns: [chunk_id]
    SELECT min(chunk_id) AS chunk_id FROM chunks GROUP BY text HAVING count(*) > 50

Severity and thresholds are dbt's: with ``severity: error`` (the default) a check fails when the
number of failing rows meets ``error_if`` (default ``"!=0"``), else warns when it meets ``warn_if``
(default ``"!=0"``); with ``severity: warn`` it can only warn. Anything a file does not spell
correctly is an `InvalidChecks` error with file and line, never ignored.

Running them::

    with open_parquet({"chunks": ["part-0.parquet"]}) as relations:
        outcomes = run_checks(builtin_checks("snapshot_chunks"), relations)
    blocking = [outcome for outcome in outcomes if outcome.is_blocking]

Another engine is whatever fulfils `Relations`.
"""

from dbt_like_checks.check import Check, Engine, Severity, Threshold, Thresholds
from dbt_like_checks.errors import InvalidChecks, QueryFailed, UnreadableRelation
from dbt_like_checks.loading import builtin_checks, load_checks
from dbt_like_checks.outcome import CheckOutcome, Status
from dbt_like_checks.relations import ParquetRelations, open_parquet
from dbt_like_checks.running import Relations, run_check, run_checks

__all__ = [
    "Check",
    "CheckOutcome",
    "Engine",
    "InvalidChecks",
    "ParquetRelations",
    "QueryFailed",
    "Relations",
    "Severity",
    "Status",
    "Threshold",
    "Thresholds",
    "UnreadableRelation",
    "builtin_checks",
    "load_checks",
    "open_parquet",
    "run_check",
    "run_checks",
]
