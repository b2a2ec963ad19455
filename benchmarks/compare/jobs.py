# SPDX-License-Identifier: BSL-1.0
"""Starts the ranks of one library and asks them for batches; between batches they sleep in a read of a socket."""
import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Unsupported(Exception):
    """The library has no such operation."""


class Failed(Exception):
    """The ranks died, hung, or answered nonsense."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def rank_environments(base, ranks, scratch):
    port = str(free_port())
    for rank in range(ranks):
        yield dict(base, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_STORE=scratch)


# How each library is told to use shared memory or loopback TCP. Gloo has TCP alone.
LIBRARIES = {
    "cohort": {"launcher": None, "shm": {}, "tcp": {"COHORT_SHM": "0"}},
    "openmpi": {
        "launcher": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"],
        "bound": ["--bind-to", "core"], "free": ["--bind-to", "none"],
        "shm_arguments": ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"],
        "tcp_arguments": ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"],
        "shm": {}, "tcp": {}},
    "mpich": {
        "launcher": ["mpiexec.mpich", "-np"], "bound": ["-bind-to", "core"], "free": ["-bind-to", "none"],
        "shm_arguments": [], "tcp_arguments": [],
        "shm": {}, "tcp": {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}},
    "gloo": {"launcher": None, "shm": {}, "tcp": {}},
}
# No library at all: what the machine allows.
LIBRARIES["bare"] = {"launcher": None, "shm": {"MEASURE_TRANSPORT": "shm"}, "tcp": {"MEASURE_TRANSPORT": "tcp"}}
# The same programs with their buffers registered, which is a matter of shared memory.
for each in ("cohort", "bare"):
    LIBRARIES[each + "_registered"] = dict(
        LIBRARIES[each], program=each, shm=dict(LIBRARIES[each]["shm"], MEASURE_REGISTER="1"))
LIBRARIES["bare_single"] = dict(LIBRARIES["bare"], program="bare", shm={"MEASURE_TRANSPORT": "single"})
# Cohort over either, with MPI's own promises: that ranks call the same is not checked before MPI's own collectives.
for mpi in ("openmpi", "mpich"):
    over = dict(LIBRARIES[mpi])
    for transport in ("shm", "tcp"):
        over[transport] = dict(over[transport], COHORT_MPI_CHECK="never", **LIBRARIES["cohort"][transport])
    LIBRARIES["cohort_" + mpi] = over
    # MPI's calls that return at once: the ones that an operation of cohort's stands beside.
    LIBRARIES[mpi + "_requests"] = LIBRARIES[mpi]
    # Nothing but its messages, each behind a header.
    LIBRARIES["bare_" + mpi] = LIBRARIES[mpi]


@contextlib.contextmanager
def busy_process(session):
    """While it is entered, a process computes without a pause: in this session ("same") or in another; None: there is none."""
    if session is None:
        yield
        return
    # It ends with this process, however that ends.
    program = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(100000))"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL,
                          start_new_session=session == "other") as process:
        try:
            yield
        finally:
            process.kill()


class Job:
    """The ranks of one library, alive until close()."""

    def __init__(self, library, program, ranks, transport, extra_environment=None):
        self.library, self.ranks = library, ranks
        self.processes, self.links = [], {}
        self.scratch = tempfile.mkdtemp(prefix="measure.")
        path = os.path.join(self.scratch, "control")
        self.log = open(os.path.join(self.scratch, "log"), "w+b")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(ranks)
        how = LIBRARIES[library]
        # Each rank on a core of its own, if there are enough: a launcher may do so or not, which is not what is compared.
        cores = sorted(os.sched_getaffinity(0))
        bound = ranks <= len(cores)
        base = dict(os.environ, MEASURE_SOCKET=path, **how[transport], **(extra_environment or {}))
        if how["launcher"] is None:
            for rank, environment in enumerate(rank_environments(base, ranks, self.scratch)):
                self._start([program], environment, {cores[rank]} if bound else cores)
        else:
            words = how["launcher"] + [str(ranks)] + how["bound" if bound else "free"] + how[transport + "_arguments"]
            self._start(words + [program], base, cores)
        try:
            self._meet(listener)
        except Exception:
            self.close()
            raise
        finally:
            listener.close()

    def _start(self, words, environment, cores):
        # No session for each rank: a kernel that groups processes by session shares the cores out among the groups first, and
        # ranks that are each in one of their own take up to half as long again (NOTES.md). MPICH's launcher makes such ones.
        def prepare():
            os.setpgid(0, 0)
            os.sched_setaffinity(0, cores)
        self.processes.append(subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=self.log,
                                               stderr=self.log, preexec_fn=prepare))

    def _meet(self, listener):
        deadline = time.monotonic() + 30
        listener.settimeout(0.2)
        while len(self.links) < self.ranks:
            if time.monotonic() > deadline or any(p.poll() not in (None, 0) for p in self.processes):
                raise Failed(f"{self.library}: {len(self.links)} of {self.ranks} ranks started; {self._last_words()}")
            try:
                connection, _ = listener.accept()
            except socket.timeout:
                continue
            connection.settimeout(30)
            link = connection.makefile("rwb", buffering=0)
            self.links[int(link.readline().split()[1])] = (connection, link)

    def _last_words(self):
        self.log.flush()
        with open(self.log.name, "rb") as text:
            lines = text.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def batch(self, operation, size, kind, functor, warm, calls, limit=90.0):
        """Seconds per call, the slowest rank's, and how many elements were wrong on all ranks."""
        line = f"{operation} {size} {kind} {functor} {warm} {calls}\n".encode()
        for connection, _ in self.links.values():
            connection.sendall(line)
        slowest, wrong, missing = 0.0, 0, None
        deadline = time.monotonic() + limit
        for rank, (connection, link) in self.links.items():
            if not select.select([connection], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise Failed(f"{self.library}: rank {rank} gave no answer to {operation} of {size} bytes in {limit} s")
            words = link.readline().decode().split(maxsplit=1)
            if not words:
                raise Failed(f"{self.library}: rank {rank} ended; {self._last_words()}")
            if words[0] == "unsupported":
                missing = words[1].strip()
                continue
            seconds, count = words[1].split()
            slowest, wrong = max(slowest, float(seconds)), wrong + int(count)
        if missing is not None:
            raise Unsupported(missing)
        return slowest / calls, wrong

    def close(self):
        for connection, link in self.links.values():
            link.close()
            connection.close()
        self.links = {}
        deadline = time.monotonic() + 3
        for process in self.processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.processes = []
        self.log.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
