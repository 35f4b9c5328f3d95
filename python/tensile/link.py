"""The line to the sidecar: messages of JSON over a socket, as package external of Tensile describes them."""

import array
import json
import math
import os
import select
import socket
import sys

import torch

from . import lines
from .copies import rates
from .iteration import LEAST

VARIABLE, ADDRESS = "TENSILE_SOCKET", "TENSILE_ADDRESS"
PATIENCE = 60  # seconds, in which a sidecar answers
HELD = socket.CMSG_SPACE(16 * array.array("i").itemsize)


def say(text):
    print("tensile: " + text, file=sys.stderr, flush=True)


class Stopped(SystemExit):
    """The sidecar has told the script to end."""


def one_line(text):
    return "".join(c if c.isprintable() else " " for c in text)[:2000]


def reserved(device):
    """Returns what the allocator keeps now; that of a CPU keeps nothing."""
    return torch.cuda.memory_reserved() if device == "cuda" else 0


def hello(device):
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    memory = (torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory if device == "cuda"
              else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    body = {"kind": device, "name": name, "memory_bytes": memory,
            "least_bytes": 1 << 20 if device == "cuda" else LEAST}
    if device == "cuda":
        body["out_bytes_per_s"], body["in_bytes_per_s"] = rates()
        torch.cuda.empty_cache()
    said = {"pid": os.getpid(), "framework": "torch", "release": torch.__version__, "device": body}
    rank = os.environ.get("LOCAL_RANK", "")  # as torchrun and others number the processes of a host
    if rank.isascii() and rank.isdigit() and int(rank) < 1 << 16:
        said["rank"] = int(rank)
    together = torch.distributed
    if together.is_available() and together.is_initialized() and together.get_world_size() > 1:
        said["group"] = True
    return said


def recorded(number, iteration, name):
    body = {"number": number, "graph": iteration.graph(name), "latency_ns": iteration.latencies()}
    if iteration.held:
        body["held_bytes"] = iteration.held
    return body


def line(kind, body):
    return (json.dumps({"version": 1, "kind": kind, "body": body}, separators=(",", ":")) + "\n").encode()


class Link:
    """What a session tells its planner goes to the sidecar, and what the sidecar says is taken at boundaries."""

    def __init__(self, sock, device):
        self.sock, self.device = sock, device
        self.text = b""
        self.held = []  # files of the sidecar: that they are open shows that this process lives
        self.plan = None  # the newest, if it was not taken yet
        self.older = {}  # graph -> the newest plan for it, of other graphs than that one's, that was not taken yet
        self.parked = self.parking = self.stopping = False
        self.counter = 0  # of park and resume
        self.newest = None
        self.send("hello", hello(device))

    # to the sidecar

    def send(self, kind, body):
        if self.sock is None:
            return
        try:
            self.sock.sendall(line(kind, body))
        except OSError:
            self.lost("the sidecar is gone, or takes no other process of this command")

    def lost(self, why):
        if self.sock is not None:
            self.sock.close()
            self.sock = None
            say(why + ("; it trains without a plan" if self.newest is None
                       else "; training goes on with the plan that is there"))

    def graph(self, number, iteration):
        self.send("graph", recorded(number, iteration, "script"))

    def applied(self, plan, iterations, error):
        body = {"plan": plan["number"], "iteration": iterations, "reserved_bytes": reserved(self.device)}
        if error:
            body["error"] = one_line(error)
        self.send("applied", body)

    def iteration(self, session, graph, plan, wall):
        body = {"iteration": session.iterations, "graph": graph, "plan": plan, "wall_ns": wall, "stall_ns": 0,
                "touched_bytes": session.touched, "reserved_bytes": session.reserved}
        p = session.player
        if p is not None and graph:
            copies = p.copies if p.moves is None else p.moves.copies
            host = copies.bytes()
            body["stall_ns"], copies.waited = min(copies.waited, wall), 0
            if plan and p.moves is not None:
                body["hooks"] = True
            if plan and session.steps is not None and session.steps[0] == plan:
                body["steps_ns"], session.steps = session.steps[1], None
            if host:
                body["host_bytes"] = host
            if p.faults:
                body["faults"], p.faults = p.faults, 0
            if plan and session.retries:
                body["retries"] = session.retries
        if session.loss is not None and math.isfinite(session.loss):
            body["loss"] = session.loss
        self.send("iteration", body)

    def passive(self, iterations, why, always):
        body = {"iteration": iterations, "why": one_line(why)}
        if always:
            body["always"] = True
        self.send("passive", body)

    def left(self, session):
        self.passive(session.iterations, "the script has left (tensile.leave), and may do anything until it ends", True)
        self.end(session)

    def end(self, session, error=None):
        body = {"iteration": session.iterations}
        if error:
            body["error"] = one_line(error)
        if self.stopping:
            body["stopped"] = True
        self.send("end", body)
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    # from the sidecar

    def take(self):
        """Returns the newest plan for a graph, or for all as graph 0, that was not taken yet, the earliest first; or None."""
        self._read(0)
        if self.older:
            return self.older.pop(min(self.older, key=lambda graph: self.older[graph]["number"]))
        plan, self.plan = self.plan, None
        return plan

    def begin(self, session):
        """Waits for the first plan, which has the limit, or for the order to rest until there is one."""
        self._read(PATIENCE)
        self.step(session)

    def step(self, session):
        """After a step of the optimizer: rests or ends if the sidecar says so."""
        self._read(0)
        if self.parking and not self.stopping and self.sock is not None:
            away = session.rest()
            if self.device == "cuda":
                torch.cuda.empty_cache()
            told = None
            while self.parking and not self.stopping and self.sock is not None:
                if told != self.counter:  # also where it was to go on and to rest again meanwhile
                    told = self.counter
                    self.send("parked", {"number": told, "iteration": session.iterations,
                                         "reserved_bytes": reserved(self.device)})
                self._read(None)
            session.wake(away)
            if self.plan is None and self.newest is not None and not self.stopping:
                self.plan = self.newest  # applied is its answer
        if self.stopping:
            session.home()
            self.end(session)
            raise Stopped(0)

    def _read(self, wait):
        while self.sock is not None:
            ready, _, _ = select.select([self.sock], [], [], wait)
            if not ready:
                return
            try:
                got, files, _, _ = self.sock.recvmsg(1 << 20, HELD, socket.MSG_CMSG_CLOEXEC)
                for level, kind, data in files:
                    if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                        self.held.append(array.array("i", data))
            except OSError:
                got = b""
            if not got:
                self.lost("the sidecar is gone, or takes no other process of this command")
                return
            *complete, self.text = (self.text + got).split(b"\n")
            try:
                for text in complete:
                    self._hear(*lines.read(text))
                if len(self.text) > lines.LONGEST:
                    raise ValueError(f"a line has more than {lines.LONGEST} bytes")
            except ValueError as e:
                why = one_line(f"cannot read what the sidecar says: {e}")
                self.lost(why)
            wait = 0 if complete else wait

    def _hear(self, kind, body):
        if kind == "plan":
            if self.newest is None or body["number"] > self.newest["number"]:
                if self.plan is not None:
                    self.older[self.plan["graph"]] = self.plan
                if not body["graph"]:
                    self.older.clear()
                self.older.pop(body["graph"], None)
                self.plan = self.newest = body
        elif kind in ("park", "resume"):
            if body["number"] > self.counter:
                self.counter, self.parking = body["number"], kind == "park"
        else:
            self.stopping = True


def from_environment():
    """Returns a connection to the sidecar: to its address, since a launcher may have closed the descriptor, or else by the
    descriptor. None, and a line says why, if there is none."""
    number, address = os.environ.pop(VARIABLE, None), os.environ.pop(ADDRESS, None)
    if number is None and address is None:
        say("there is no sidecar (start the script with tensile join -- COMMAND): it trains without a plan")
        return None
    try:
        if address is None:
            return socket.socket(fileno=int(number))
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect("\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            sock.close()
            raise
        return sock
    except (ValueError, OSError) as e:
        say(f"the sidecar cannot be reached at {address or number} ({e}): it trains without a plan")
        return None
