"""The offload of a hook: turns that leave an agent's context go to the service, each once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from knowledge.cli.memory.hook_payloads import HookPayload
from knowledge.cli.memory.hook_status import OK, SKIPPED, SPOOLED, HookOutcome
from knowledge.cli.memory.markers import Marker, Markers, transcript_key
from knowledge.cli.memory.memory_service import MemoryService, Refused
from knowledge.cli.memory.spool import Spool, SpooledRequest
from knowledge.cli.memory.state import StateFolder, alone
from knowledge.cli.memory.transcripts import Transcript, Turn, opened, read_transcript
from knowledge.errors import InvalidInput, KnowledgeError, Unavailable

KEPT_EXCHANGES: Final = 10
LARGEST_REQUEST_TURNS: Final = 400
LARGEST_REQUEST_BYTES: Final = 256 * 1024
_ENVELOPE_BYTES: Final = 4096
_EVENTS: Final = ("PreCompact", "SessionEnd", "Stop")
# What the service will never take, whoever asks again.
_HOPELESS: Final = (400, 413, 422)


@dataclass(slots=True)
class _Tally:
    """What became of the turns so far."""

    turns: int = 0
    from_spool: int = 0
    spooled: int = 0
    left: int = 0
    jobs: list[str] = field(default_factory=list)
    failure: KnowledgeError | None = None


@dataclass(frozen=True, slots=True)
class Offloader:
    """Sends to one service; ``seconds_left`` is the time there is for asking it."""

    service: MemoryService
    state: StateFolder
    seconds_left: Callable[[], float]
    may_spool: bool = False

    def offload(self, payload: HookPayload) -> HookOutcome:
        """Offload what is older than the last ten exchanges and was not offloaded before.

        Raises `NotFound` and `InvalidInput` for a transcript that cannot be read, `Unavailable`
        and `Refused` when nothing was accepted, `OSError` where the state cannot be kept.
        """
        if payload.event not in _EVENTS:
            return HookOutcome(SKIPPED, f"nothing is offloaded at {payload.event}")
        if payload.transcript_path is None:
            raise InvalidInput("the hook names no transcript")
        self.state.prepare()
        markers = Markers(self.state.markers_dir)
        with opened(payload.transcript_path) as descriptor:
            key = transcript_key(payload.transcript_path)
            with alone(markers.lock_file(key)) as is_alone:
                if not is_alone:
                    return HookOutcome(SKIPPED, "another hook is offloading this transcript")
                return self._offload(payload, descriptor, key, markers)

    def _offload(
        self, payload: HookPayload, descriptor: int, key: str, markers: Markers
    ) -> HookOutcome:
        tally = _Tally()
        self._send_spool(markers, tally)
        marker = markers.get(key)
        if marker and not marker.fits(descriptor):
            marker = None
        start = self._spooled_until(key, descriptor, marker.offset if marker else 0)
        known = frozenset[str]() if start else markers.uuids()
        transcript = read_transcript(descriptor, start=start, known_uuids=known)
        turns, boundary = transcript.older_than(KEPT_EXCHANGES)
        for request in self._requests(payload, descriptor, key, turns, start, boundary):
            self._send(request, markers, tally)
        markers.forget_old()
        return _outcome(tally, transcript)

    def _requests(
        self,
        payload: HookPayload,
        descriptor: int,
        key: str,
        turns: Sequence[Turn],
        start: int,
        boundary: int,
    ) -> list[SpooledRequest]:
        requests: list[SpooledRequest] = []
        chunks = cut(turns)
        session = payload.session_id or Path(payload.transcript_path or "").stem[:64] or key
        for position, chunk in enumerate(chunks):
            end = boundary if position == len(chunks) - 1 else chunk[-1].end
            uuid = next((turn.uuid for turn in reversed(chunk) if turn.uuid), None)
            model = next((turn.model for turn in reversed(chunk) if turn.model), None)
            body = {
                "turns": [_wire(turn) for turn in chunk],
                "client": payload.client,
                "sessionId": session,
                **({"model": model} if model else {}),
            }
            requests.append(
                SpooledRequest(
                    self.service.destination,
                    key,
                    start,
                    Marker.at(descriptor, end, uuid),
                    self.service.addressed(body),
                )
            )
            start = end
        return requests

    def _send(self, request: SpooledRequest, markers: Markers, tally: _Tally) -> None:
        turns = len(request.body["turns"])
        if tally.failure is None:
            try:
                self._post(request, tally)
            except (Refused, Unavailable) as error:
                tally.failure = error
            else:
                markers.advance(request.transcript, request.marker)
                tally.turns += turns
                return
        # What waits must have no gap: the marker moves over it when it is sent.
        may_wait = self.may_spool and isinstance(tally.failure, Unavailable) and not tally.left
        if may_wait and Spool(self.state.spool_dir).add(request):
            tally.spooled += turns
        else:
            tally.left += turns

    def _send_spool(self, markers: Markers, tally: _Tally) -> None:
        """Send what waits, oldest first, until the service fails: facts arrive in their order."""
        spool = Spool(self.state.spool_dir)
        if not spool.size().files:
            return
        with alone(spool.lock_file) as is_alone:
            for path, request in spool.waiting() if is_alone else ():
                if request.destination != self.service.destination:
                    continue
                try:
                    self._post(request, tally)
                except Unavailable as error:
                    tally.failure = error
                    return
                except Refused as error:
                    if error.status not in _HOPELESS:
                        tally.failure = error
                        return
                else:
                    tally.from_spool += len(request.body["turns"])
                    current = markers.get(request.transcript)
                    reached = current.offset if current else 0
                    if request.start <= reached < request.marker.offset:
                        markers.advance(request.transcript, request.marker)
                path.unlink(missing_ok=True)

    def _post(self, request: SpooledRequest, tally: _Tally) -> None:
        told = f"{request.destination} {request.transcript} {request.start} {request.marker}"
        answer = self.service.post(
            "offload",
            request.body,
            timeout_s=self.seconds_left(),
            idempotency_key=hashlib.sha256(told.encode()).hexdigest()[:32],
        )
        job = answer.get("jobId")
        if isinstance(job, str):
            tally.jobs.append(job[:64])

    def _spooled_until(self, key: str, descriptor: int, start: int) -> int:
        """Where the turns begin that neither were accepted nor wait in the spool."""
        for _, request in Spool(self.state.spool_dir).waiting():
            is_next = request.transcript == key and request.start <= start < request.marker.offset
            is_ours = request.destination == self.service.destination
            if is_next and is_ours and request.marker.fits(descriptor):
                start = request.marker.offset
        return start


def cut(turns: Sequence[Turn]) -> list[list[Turn]]:
    """The turns in order, cut into requests of at most 400 turns and 256 KiB."""
    chunks: list[list[Turn]] = []
    size_bytes = 0
    for turn in turns:
        turn_bytes = len(json.dumps(_wire(turn))) + 2
        has_room = size_bytes + turn_bytes <= LARGEST_REQUEST_BYTES - _ENVELOPE_BYTES
        if not chunks or not has_room or len(chunks[-1]) >= LARGEST_REQUEST_TURNS:
            chunks.append([])
            size_bytes = 0
        chunks[-1].append(turn)
        size_bytes += turn_bytes
    return chunks


def _wire(turn: Turn) -> dict[str, Any]:
    told = {"role": turn.role, "content": turn.content}
    return {**told, "time": turn.time} if turn.time else told


def _outcome(tally: _Tally, transcript: Transcript) -> HookOutcome:
    counts = {
        "turns": tally.turns,
        "fromSpool": tally.from_spool,
        "spooled": tally.spooled,
        "left": tally.left,
        "skippedLines": transcript.skipped_lines,
        "skippedBytes": transcript.skipped_bytes,
    }
    has_sent = bool(tally.turns or tally.from_spool)
    if tally.failure and not tally.spooled and not has_sent:
        raise tally.failure
    details = {"jobs": tally.jobs[-10:]}
    if tally.spooled:
        return HookOutcome(SPOOLED, str(tally.failure), counts, details)
    if has_sent:
        reason = f"the rest waits for the next hook: {tally.failure}" if tally.failure else None
        return HookOutcome(OK, reason, counts, details)
    if not transcript.turns:
        return HookOutcome(SKIPPED, "the transcript holds no new turns", counts)
    return HookOutcome(SKIPPED, f"nothing is older than {KEPT_EXCHANGES} exchanges", counts)
