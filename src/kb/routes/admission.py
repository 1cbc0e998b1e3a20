"""Queues for requests that take a while: short waits, and a fair share for each client."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from starlette.types import Scope

from kb.api.errors import Busy

HAS_TURN: Final = "kb.has_turn"
"""The key in a request's scope that is true once the request has waited."""

PAUSE, LONGEST_PAUSE = 0.3, 1.0
"""The pause after a turn if other work waits: this share of the turn's time, and at most this number of seconds."""

TYPICAL_SECONDS: Final = 0.05
"""The expected time of a turn before any was measured."""

WEIGHT, OUTLIER = 0.2, 4.0
"""The weight of the last turn in a mean time, and the multiple of the mean beyond which a turn counts no more."""

LEAST_SECONDS: Final = 0.005
"""A shorter mean would take too long to grow."""

RECENT_SECONDS: Final = 1.0
"""How long a client counts as one of several after its last request."""

DEAR: Final = 2.0
"""A client whose turns take longer than this multiple of the mean has no claim to a turn after a long wait."""

MOST_CLIENTS: Final = 1000
"""The number of clients beyond which those without requests are forgotten."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that is waiting for its turn, and since when."""

    turn: asyncio.Future[None]
    since: float


@dataclass(slots=True)
class Client:
    """A client of a queue.

    Args:
        seconds: the mean time of its turns.
        used: its use of turns in seconds, plus the time before it came. The client with the least is next.
        waiting: its requests, in the order of their arrival.
        running: the number of its turns now.
        seen: when its last request came or ended.
    """

    seconds: float
    used: float
    waiting: deque[Waiting] = field(default_factory=deque)
    running: int = 0
    seen: float = 0.0

    @property
    def is_active(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def load(self) -> float:
        """The expected time of its waiting requests, in seconds."""
        return len(self.waiting) * self.seconds


class Admission:
    """A queue: some requests run, and the others wait. Each client's requests take turns in the order they came.

    The next turn is for the client that used the least time, as in start-time fair queuing (Goyal, Vin and Cheng,
    1996), so that a client with many or expensive requests delays mostly itself. While there are several clients, none
    has all turns, because the requests of the others would wait for the end of one of them.

    Args:
        limit: the maximum number of requests that run or wait.
        at_once: the maximum number that run, because more would only compete for the interpreter's lock.
        requested: what there is too much of beyond the limit, for the message; None for searches.
        gives_way: returns whether other work waits, which a queue that is never empty would starve.
        clock: returns monotonic seconds, to time turns.
        patience: the longest expected wait in seconds; a request that would wait longer is refused at once, and one
            that has waited so long is next.
    """

    def __init__(
        self,
        limit: int,
        at_once: int,
        requested: str | None = None,
        gives_way: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.perf_counter,
        patience: float = math.inf,
    ) -> None:
        self._limit = limit
        self._at_once = at_once
        self._refusal = requested and f"Too many {requested} (at most {limit} at once). Try again in a second."
        self._gives_way = gives_way
        self._clock = clock
        self._patience = patience
        self._count = 0
        self._free = at_once
        self._seconds = TYPICAL_SECONDS
        self._now = 0.0
        self._clients: dict[str, Client] = {}
        self.refused = 0

    @property
    def is_crowded(self) -> bool:
        """Whether more than one request runs or waits."""
        return self._count > 1

    @asynccontextmanager
    async def turn(self, scope: Scope, name: str = "") -> AsyncIterator[None]:
        """Wait for a turn, which lasts as long as the request, including a second attempt; `name` is the client's.

        Raises:
            Busy: too many requests wait, or this one would wait too long.
        """
        if HAS_TURN in scope:
            yield
            return
        client = await self._begin(name)
        begun = self._clock()
        try:
            scope[HAS_TURN] = True
            yield
        finally:
            self._end(client, self._clock() - begun)

    def expected(self, client: Client) -> float:
        """Return the time in seconds that the next request of a client will probably wait."""
        share = self._share(client)
        if self._free and client.running < share:
            return 0.0
        before = client.load
        others = sum(min(other.load, before + other.seconds) for other in self._clients.values() if other is not client)
        return max((before + others) / self._at_once, before / share) + self._seconds / 2

    def _share(self, client: Client) -> int:
        """Return how many turns a client may have at once."""
        since = self._clock() - RECENT_SECONDS
        is_one_of_several = any(
            other.is_active or other.seen > since for other in self._clients.values() if other is not client
        )
        return max(1, self._at_once - is_one_of_several)

    async def _begin(self, name: str) -> Client:
        client = self._client(name)
        wait = self.expected(client)
        if self._count >= self._limit or wait > self._patience:
            self.refused += 1
            raise Busy.after(wait, self._refusal)
        self._count += 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = Waiting(turn, self._clock())
        client.waiting.append(waiting)
        self._hand_out()
        try:
            await turn
        except BaseException:
            self._count -= 1
            if turn.done() and not turn.cancelled():
                client.running -= 1
                self._release()
            elif waiting in client.waiting:
                client.waiting.remove(waiting)
            raise
        return client

    def _end(self, client: Client, seconds: float) -> None:
        """Start the next turn; if other work waits, after a pause in proportion to this turn."""
        self._count -= 1
        client.running -= 1
        client.seen = self._clock()
        client.used += seconds
        client.seconds = _mean(client.seconds, seconds)
        self._seconds = _mean(self._seconds, seconds)
        if self._count >= self._at_once and self._gives_way():
            asyncio.get_running_loop().call_later(min(PAUSE * seconds, LONGEST_PAUSE), self._release)
        else:
            self._release()

    def _release(self) -> None:
        self._free += 1
        self._hand_out()

    def _hand_out(self) -> None:
        """Give each free turn to the client that used the least time."""
        while self._free and (client := self._next()):
            self._now = max(self._now, client.used)
            self._free -= 1
            client.running += 1
            client.waiting.popleft().turn.set_result(None)

    def _next(self) -> Client | None:
        """Return the waiting client with the least use, or one that has waited as long as a request should.

        Without the second rule, clients that come all the time would overtake one that was just served.
        """
        for client in self._clients.values():
            while client.waiting and client.waiting[0].turn.done():  # was given up
                client.waiting.popleft()
        ready = [
            client
            for client in self._clients.values()
            if client.waiting and (not client.running or client.running < self._share(client))
        ]
        since = self._clock() - self._patience
        late = [
            client for client in ready if client.waiting[0].since < since and client.seconds <= DEAR * self._seconds
        ]
        if late:
            return min(late, key=lambda client: client.waiting[0].since)
        return min(ready, key=lambda client: client.used, default=None)

    def _client(self, name: str) -> Client:
        """Return a client; one without requests in the meantime gets no credit for that time."""
        if len(self._clients) > MOST_CLIENTS:
            self._clients = {name: client for name, client in self._clients.items() if client.is_active}
        client = self._clients.setdefault(name, Client(self._seconds, self._now))
        if not client.is_active:
            client.used = max(client.used, self._now)
        client.seen = self._clock()
        return client


def _mean(mean: float, seconds: float) -> float:
    return mean + WEIGHT * (min(seconds, OUTLIER * max(mean, LEAST_SECONDS)) - mean)
