"""A UDP relay between a sender and a receiver on loopback addresses, one path for each address.

Each path has a rate and a queue, like a link, so that neither end nor Python is the bottleneck. A
plan sees every datagram and decides what happens to it.
"""

import collections
import heapq
import itertools
import selectors
import socket
import threading
import time

TO_RECEIVER, TO_SENDER = 0, 1
MTU = 1472  # larger datagrams do not fit, as on Ethernet
QUEUE_S = 0.05  # the longest wait in a link's queue
SO_RCVBUFFORCE = 33


class Plan:
    """Forwards everything as it is."""

    def datagram(self, flow, direction, data):
        """What leaves the relay for this datagram: pairs of a delay in seconds and the data."""
        return [(0, data)]


class Flow:
    """The datagrams of one address of the sender to one of the receiver. `sockets` and `ends`: by
    direction, the socket that sends, and the address that it sends to."""

    def __init__(self, path, client, listening, upstream, target):
        self.path = path
        self.sockets, self.ends = (upstream, listening), (target, client)


class Relay:
    """The relay, in a thread of its own. Use it as a context manager."""

    def __init__(self, targets, plan=None, rate=None, keep=False):
        """`targets`: the receiver's addresses, pairs of host and port; `rate`: of each path in bit/s;
        `keep`: the datagrams of all paths, as triples of direction, path and data, in `kept`."""
        self.targets, self.plan, self.rate = targets, plan or Plan(), rate
        self.kept = [] if keep else None
        self.flows, self.counts = {}, collections.Counter()
        self._selector, self._due, self._order = selectors.DefaultSelector(), [], itertools.count()
        self._free, self._jobs, self._stop = {}, collections.deque(), False
        self._listening = [self._socket((host, 0)) for host, _ in targets[:1]]
        port = self._listening[0].getsockname()[1]
        # One port for all: the receiver tells its addresses, and the sender knows one UDP port.
        self._listening += [self._socket((host, port)) for host, _ in targets[1:]]
        for path, listening in enumerate(self._listening):
            self._selector.register(listening, selectors.EVENT_READ, (path, None))
        self.addresses = [(host, port) for host, _ in targets]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop = True
        self._thread.join(5)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    @property
    def dest(self):
        """The destination for `manypath send`."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    def do(self, job):
        """Runs a function in the relay's thread."""
        self._jobs.append(job)

    def inject(self, flow, direction, data):
        """Sends a datagram as if it came from the other end; it uses no room of the link."""
        self._send(flow.sockets[direction], flow.ends[direction], data)

    def divert(self, flow, data):
        """Sends a datagram to the receiver from an address that it has not seen. What it answers is
        dropped."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(data, flow.ends[TO_RECEIVER])

    @staticmethod
    def _socket(address):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setblocking(False)
        for option in (socket.SO_RCVBUF, SO_RCVBUFFORCE):
            try:
                one.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
            except PermissionError:
                pass
        one.bind(address)
        return one

    def _run(self):
        try:
            while not self._stop:
                self._turn()
        except Exception as why:  # The test asks for it; a silent thread would look like a dead network.
            self.failure = why
            raise

    def _turn(self):
        wait = self._due[0][0] - time.monotonic() if self._due else 0.02
        for key, _ in self._selector.select(max(0, min(wait, 0.02))):
            for _ in range(64):
                try:
                    data, source = key.fileobj.recvfrom(65536)
                except (BlockingIOError, ConnectionRefusedError):
                    break
                self._take(key, data, source)
        while self._jobs:
            self._jobs.popleft()()
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, one, address, data = heapq.heappop(self._due)
            self._send(one, address, data)

    def _take(self, key, data, source):
        path, flow = key.data
        direction = TO_SENDER if flow else TO_RECEIVER
        flow = flow or self.flows.get((path, source)) or self._open(path, source)
        if len(data) > MTU:
            self.counts["too long"] += 1
            return
        if self.kept is not None:
            self.kept.append((direction, path, data))
        self.counts["datagrams"] += 1
        for delay, data in self.plan.datagram(flow, direction, data):
            self._queue(flow, direction, delay, data)

    def _open(self, path, client):
        upstream = self._socket((self.targets[path][0], 0))
        flow = Flow(path, client, self._listening[path], upstream, self.targets[path])
        self._selector.register(upstream, selectors.EVENT_READ, (path, flow))
        self.flows[path, client] = flow
        return flow

    def _queue(self, flow, direction, delay, data):
        due = time.monotonic()
        if self.rate:
            begin = max(due, self._free.get((flow.path, direction), 0))
            if begin - due > QUEUE_S:
                self.counts["queue full"] += 1
                return
            due = begin + 8 * len(data) / self.rate
            self._free[flow.path, direction] = due
        item = (due + delay, next(self._order), flow.sockets[direction], flow.ends[direction], data)
        heapq.heappush(self._due, item)

    @staticmethod
    def _send(one, address, data):
        try:
            one.sendto(data, address)
        except OSError:
            pass  # Lost, as in any network.
