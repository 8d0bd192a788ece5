"""The process behind ``knowledge up``: starts the parts, keeps them up, leaves nothing behind."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Final

from knowledge.errors import StackError, Unavailable
from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.dagster_instance import write_instance_config, write_workspace
from knowledge.stack.parts import Part, StackContext, part_environment, parts_of
from knowledge.stack.ports import choose_port, free_ports, is_free
from knowledge.stack.process import (
    ProcessId,
    adopt_orphans,
    end,
    end_descendants,
    end_marked,
    last_lines,
    reap,
    spawn,
)
from knowledge.stack.record import (
    StackRecord,
    State,
    read_record,
    remove_record,
    write_record,
)
from knowledge.stack.servers import (
    Progress,
    ServerAddresses,
    embedded_processes,
    ensure_servers,
    running_servers,
    stop_servers,
)
from knowledge.storage.postgres.bootstrap import prepare_database

PREFERRED_API_PORT: Final = 8080
PREFERRED_DAGSTER_PORT: Final = 3000
LOOPBACK: Final = "127.0.0.1"
WATCH_INTERVAL_S: Final = 0.5
CRASH_WINDOW_S: Final = 300.0
CRASHES_ALLOWED: Final = 5
STOP_PATIENCE_S: Final = 15.0


class Supervisor:
    """Runs the stack of one home. The caller holds the home's supervisor lock."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        progress: Progress,
        parts: Sequence[Part] | None = None,
    ) -> None:
        self._home = home
        self._settings = settings
        self._progress = progress
        self._parts = {part.name: part for part in parts or parts_of(settings)}
        self._processes: dict[str, ProcessId] = {}
        self._moved_parts: set[str] = set()
        self._crashes = {name: Crashes() for name in self._parts}
        self._stop = threading.Event()
        self._interruptible = True
        self._state: State = "starting"

    def run(self) -> None:
        """Start everything, watch until a signal arrives, stop everything.

        Raises `StackError` when a part does not start; everything is stopped then too.
        """
        adopt_orphans()
        end_leftovers(self._home)
        with self._signals():
            ports = self._choose_ports()  # a taken one is told before anything starts
            try:
                with running_servers(self._home, self._settings, self._progress) as addresses:
                    self._run_parts(self._prepare(addresses, *ports))
            finally:
                self._interruptible = False
                stop_servers(self._home)
                end_marked(self._home.installation_id)
                end_descendants()
                remove_record(self._home)
        self._progress("stack: stopped")

    def _choose_ports(self) -> tuple[int, int]:
        stack = self._settings.stack
        api = choose_port(
            stack.api_port,
            preferred=PREFERRED_API_PORT,
            host=stack.host,
            setting="--api-port or KNOWLEDGE__STACK__API_PORT",
        )
        dagster = choose_port(
            stack.dagster_port,
            preferred=PREFERRED_DAGSTER_PORT,
            setting="--dagster-port or KNOWLEDGE__STACK__DAGSTER_PORT",
        )
        return api, dagster

    def _prepare(
        self, addresses: ServerAddresses, api_port: int, dagster_port: int
    ) -> StackContext:
        self._progress("postgres: preparing databases and schema")
        urls = prepare_database(addresses.database_admin_url, self._home.database_key)
        write_instance_config(self._home)
        write_workspace(self._home)
        return StackContext(
            home=self._home,
            settings=self._settings,
            addresses=addresses,
            dagster_database_url=urls.dagster_url,
            api_port=api_port,
            dagster_port=dagster_port,
        )

    def _run_parts(self, context: StackContext) -> None:
        try:
            context = self._start_all(context)
            self._interruptible = False
            self._state = "running"
            self._record(context)
            self._progress(f"stack: ready, api {context.api_url}, Dagster {context.dagster_url}")
            while not self._stop.wait(WATCH_INTERVAL_S):
                self._revive(context)
        finally:
            self._interruptible = False
            self._state = "stopping"
            self._record(context)
            self._progress("stack: stopping")
            for name in reversed(list(self._processes)):
                end_part(self._processes[name])

    # --- starting -------------------------------------------------------------------------

    def _start_all(self, context: StackContext) -> StackContext:
        """Returns the context that the parts run with: a port may have been chosen again."""
        begin = time.monotonic()
        healthy: set[str] = set()
        while len(healthy) < len(self._parts):
            for part in self._parts.values():
                if part.name in healthy or not healthy.issuperset(part.after):
                    continue
                if part.command and part.name not in self._processes:
                    self._spawn(part, context)
                try:
                    if self._ended(part.name):  # what answers in its place is another's
                        raise Unavailable("it ended")
                    version = part.probe(context, self._pid(part.name))
                except Unavailable as error:
                    if moved := self._moved(part.name, context):
                        context = moved
                        self._spawn(part, context)
                    else:
                        self._require_patience(part, time.monotonic() - begin, error.message)
                else:
                    healthy.add(part.name)
                    self._say_ready(part, context, version, time.monotonic() - begin)
            self._stop.wait(0.1)
        return context

    def _moved(self, name: str, context: StackContext) -> StackContext | None:
        """The context with another port, once, when ``name`` ended because its port was taken
        between the choice and its start; none when that is not the reason.
        """
        stack = self._settings.stack
        chosen = {  # by the stack itself
            "api": stack.api_port is None and (context.api_port, stack.host),
            "dagster-webserver": stack.dagster_port is None and (context.dagster_port, LOOPBACK),
        }.get(name)
        if not chosen or not self._ended(name) or name in self._moved_parts:
            return None
        # What took it may have ended since.
        last = last_lines(self._home.logs_dir / f"{name}.log", count=20).lower()
        if is_free(*chosen) and "address already in use" not in last:
            return None
        self._moved_parts.add(name)
        port = free_ports(1)[0]
        self._progress(f"{name}: port {chosen[0]} was taken meanwhile, starting on {port}")
        if name == "api":
            return replace(context, api_port=port)
        return replace(context, dagster_port=port)

    def _say_ready(self, part: Part, context: StackContext, version: str, waited_s: float) -> None:
        url = part.url(context)
        place = f" at {url}" if part.command and url else ""
        seconds = f" ({waited_s:.1f} s)" if part.command else ""
        self._progress(f"{part.name}: {version} ready{place}{seconds}")

    def _require_patience(self, part: Part, waited_s: float, reason: str) -> None:
        ended = self._ended(part.name)
        if ended or waited_s > part.start_timeout_s:
            what = "ended" if ended else f"was not ready after {waited_s:.0f} s ({reason})"
            where = (
                self._log_tail(part.name) if part.command else "check its address and that it runs"
            )
            raise StackError(f"{part.name} {what}: {where}")

    def _spawn(self, part: Part, context: StackContext) -> None:
        assert part.command is not None
        self._processes[part.name] = spawn(
            part.command(context),
            environment=part_environment(context),
            log=self._home.logs_dir / f"{part.name}.log",
        )
        self._record(context)

    # --- watching -------------------------------------------------------------------------

    def _revive(self, context: StackContext) -> None:
        reap()
        dead = [name for name, process in self._processes.items() if not process.is_alive()]
        servers = embedded_processes(self._home, self._settings)
        dead += [name for name, process in servers.items() if process is None]
        for name in dead:
            if self._crashes[name].may_restart(name, self._log_tail(name), self._progress):
                self._restart(name, context)

    def _restart(self, name: str, context: StackContext) -> None:
        part = self._parts[name]
        try:
            if part.command:
                # Its group may still hold running index builds: those end by themselves.
                self._spawn(part, context)
            else:
                ensure_servers(self._home, self._settings, self._progress)
        except StackError as error:
            self._progress(f"{name}: {error.message}")

    # --- facts ----------------------------------------------------------------------------

    def _pid(self, name: str) -> int | None:
        process = self._processes.get(name)
        return process.pid if process else None

    def _ended(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and not process.is_alive()

    def _record(self, context: StackContext) -> None:
        me = ProcessId.of_self()
        write_record(
            self._home,
            StackRecord(me, self._state, context.api_port, context.dagster_port, self._processes),
        )

    def _log_tail(self, name: str) -> str:
        log = self._home.logs_dir / f"{name}.log"
        return f"{last_lines(log, count=1) or 'it left no log'} (see {log})"

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(_number: int, _frame: FrameType | None) -> None:
            self._stop.set()
            if self._interruptible:  # starting can take minutes; stopping must run to its end
                self._interruptible = False
                raise KeyboardInterrupt

        before = {
            number: signal.signal(number, stop)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Crashes:
    """When one part crashed, and whether it may be started again yet."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: deque[float] = deque()
        self._restart_at: float | None = None
        self._given_up = False

    def may_restart(self, name: str, log_tail: str, progress: Progress) -> bool:
        """Called while the part is dead. Backs off 1, 2, 4, … s; gives up after five in 5 min."""
        now = self._clock()
        if self._given_up:
            return False
        if self._restart_at is None:
            while self._times and now - self._times[0] > CRASH_WINDOW_S:
                self._times.popleft()
            if len(self._times) >= CRASHES_ALLOWED:
                self._given_up = True
                progress(f"{name}: crashed again, not restarted any more: {log_tail}")
                return False
            delay_s = 2.0 ** len(self._times)
            self._times.append(now)
            self._restart_at = now + delay_s
            progress(f"{name}: ended unexpectedly, restart in {delay_s:.0f} s: {log_tail}")
        if now < self._restart_at:
            return False
        self._restart_at = None
        return True


def end_part(process: ProcessId) -> None:
    """Stop a part and its whole process group."""
    end(
        process,
        signals=((signal.SIGTERM, STOP_PATIENCE_S), (signal.SIGKILL, 5.0)),
        group=True,
    )


def end_leftovers(home: Home) -> int:
    """End the parts that a killed supervisor left running. Returns how many processes."""
    record = read_record(home)
    count = 0
    for process in reversed(list(record.parts.values() if record else ())):
        if process.is_alive():
            count += 1
            end_part(process)
    count += end_marked(home.installation_id)
    remove_record(home)
    return count
