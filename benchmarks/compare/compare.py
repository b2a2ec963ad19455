# SPDX-License-Identifier: BSL-1.0
"""Measures cohort and its peers in one run: for every operation, size and number of ranks all libraries take turns,
batch by batch, so that what else the machine does disturbs them alike. Called by ../compare.sh, which builds the drivers."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import jobs
import report
import targets

OPERATIONS = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter",
              "barrier", "scan", "latency", "bandwidth"]
ALL_REDUCE_SIZES = [8, 64, 512, 4096, 16384, 65536, 262144, 1048576, 2097152, 4194304, 16777216, 67108864]
OTHER_SIZES = [8, 65536, 4194304]
P2P_SIZES = [8, 4096, 65536, 1048576, 4194304]
PEERS = ["cohort_registered", "bare", "bare_single", "bare_registered", "openmpi", "mpich", "gloo", "openmpi_requests",
         "mpich_requests", "bare_openmpi", "bare_mpich", "cohort_openmpi", "cohort_mpich"]
OVER_MPI_ALONE = ("bare_openmpi", "bare_mpich")  # no library over MPI's messages: of two ranks, and messages of more
UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_of(text):
    digits = text.rstrip("KMGB")
    unit = text[len(digits):].replace("iB", "").rstrip("B") or ""
    if not digits.isdigit() or unit not in UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write for example 8, 64K or 4M")
    return int(digits) * UNITS[unit]


def list_of(kind):
    return lambda text: [kind(each) for each in text.split(",") if each]


def choices(allowed):
    def one(text):
        if text not in allowed:
            raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(allowed)}")
        return text
    return list_of(one)


def parse(words):
    p = argparse.ArgumentParser(prog="compare.sh", description="Measure cohort and its peers in one run.",
                                formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--ops", type=choices(OPERATIONS), default=OPERATIONS, help="operations, separated by commas")
    p.add_argument("--sizes", type=list_of(size_of), default=None, help="as in 8,64K,4M; left out: those of the targets")
    p.add_argument("--ranks", type=list_of(int), default=[2, 4, 8], help="numbers of ranks")
    p.add_argument("--transport", type=choices(["shm", "tcp"]), default=["shm", "tcp"], help="shm, tcp or both")
    p.add_argument("--peers", type=choices(PEERS), default=PEERS, help="cohort_registered: cohort, its buffers registered; cohort_...: over that library")
    p.add_argument("--type", choices=["float", "bfloat16"], default="float", help="element type")
    p.add_argument("--functor", choices=["sum", "user"], default="sum", help="user: one that no library knows")
    p.add_argument("--rounds", type=int, default=11, help="turns of every library at a cell, over all starts")
    p.add_argument("--starts", type=int, default=3, help="how often the ranks of every library are started")
    p.add_argument("--settle", type=int, default=0, metavar="TURNS",
                   help="afterwards measure each cell whose target lies between the quartiles of its turns again, with so many")
    p.add_argument("--batch-ms", type=float, default=12.0, help="aim for batches of this length")
    p.add_argument("--quick", action="store_true", help="5 rounds of 2 ms, one start: for tuning, not for claims")
    p.add_argument("--unchanged", action="store_true", help="write the inputs once, not before each call")
    p.add_argument("--beside", choices=["same", "other"], default=None,
                   help="a process computes without a pause meanwhile: in the session of the ranks, or in another")
    p.add_argument("--bin", required=True, help=argparse.SUPPRESS)
    p.add_argument("--output", default=None, help="folder for the results; left out: none are written")
    p.add_argument("--name", default="comparison", help="of the files there")
    options = p.parse_args(words)
    if options.quick:
        options.rounds, options.starts, options.batch_ms, options.settle = 5, 1, 2.0, 0
    if any(n < 2 for n in options.ranks) or not 1 <= options.starts <= options.rounds:
        p.error("at least 2 ranks, 1 start, and a round for each start")
    if options.settle and options.settle < 4 * options.starts:
        p.error(f"--settle {options.settle}: at least {4 * options.starts} turns, as there are {options.starts} starts")
    return options


def sizes_of(operation, ranks, options):
    if operation == "barrier":
        return [0]
    if options.sizes is not None:
        return options.sizes
    if operation == "all_reduce":
        return ALL_REDUCE_SIZES
    return P2P_SIZES if operation in ("latency", "bandwidth") else OTHER_SIZES


def start_jobs(options, ranks, transport, say):
    """The ranks of every library that there is; `say` is called with why one is left out."""
    running = {}
    for library in ["cohort"] + options.peers:
        if library.endswith(("_registered", "_single")) and transport != "shm":
            continue
        if library in OVER_MPI_ALONE and transport != "tcp":
            continue
        program = os.path.join(options.bin, jobs.LIBRARIES[library].get("program", library))
        if not os.path.exists(program):
            say(f"skipped: {library} is not installed")
            continue
        try:
            inputs = {"MEASURE_UNCHANGED": "1"} if options.unchanged else {}
            running[library] = jobs.Job(library, program, ranks, transport, inputs)
        except (jobs.Failed, OSError) as why:
            say(f"skipped: {why}")
    if "cohort" not in running:
        sys.exit("compare.sh: cohort's own driver did not start")
    return running


def messages_in_a_call(operation, size):
    """Of a window of messages the time of one is told, in a call there are as many as the drivers send (measure.hpp)."""
    window = 64 if operation == "bandwidth" else 1
    while window > 2 and window * size > 64 << 20:
        window //= 2
    return window


def calls_for(job, cell, options):
    """How many calls make a batch of the length aimed for; found by batches that grow."""
    calls = 1
    while True:
        # A rank that has lost its core for a moment says nothing of how long a call takes.
        seconds = min(job.batch(*cell, warm=1, calls=calls)[0] for _ in range(2))
        seconds *= messages_in_a_call(cell[0], cell[1])
        wanted = int(options.batch_ms / 1000 / max(seconds, 1e-9))
        if wanted <= calls * 2 or calls >= 100000:
            return max(1, min(wanted, 100000))
        calls = min(wanted, calls * 20, 100000)


class Cell:
    """One operation, size and number of ranks, and what every library has taken for it."""

    def __init__(self, transport, ranks, operation, size, options):
        self.transport, self.ranks, self.operation, self.size = transport, ranks, operation, size
        self.asked = (operation, size, options.type, options.functor)
        self.calls, self.found, self.wrong = {}, {}, {}  # of each library; calls: of its next batch, found: in such a time
        self.turns = []  # of each turn: library -> microseconds per call

    def times(self, library):
        return [turn[library] for turn in self.turns if library in turn]

    def ratio(self, peer, own):
        """One's time over the other's, as a rule a peer's over cohort's: of the medians, and the quartiles of the turns' own."""
        each = sorted(turn[peer] / turn[own] for turn in self.turns if peer in turn and own in turn)
        if not each:
            return None
        quarter = len(each) // 4
        peers, owns = statistics.median(self.times(peer)), statistics.median(self.times(own))
        return {"ratio": peers / owns, "q1": each[quarter], "q3": each[-1 - quarter], "difference": peers - owns}

    def row(self, options):
        """What a comparison says of it."""
        libraries = [l for l in ["cohort"] + options.peers if self.times(l)]
        row = {"transport": self.transport, "ranks": self.ranks, "operation": self.operation, "bytes": self.size,
               "type": options.type, "functor": options.functor, "wrong": self.wrong,
               "times": {l: summary(self.times(l)) for l in libraries}, "ratios": {}, "over_mpi": {}, "registered": None}
        for library in libraries:
            over = "cohort_" + library.removesuffix("_requests")
            for place, found in (("ratios", report.is_peer(library) and self.ratio(library, "cohort")),
                                 ("over_mpi", over in libraries and self.ratio(over, library))):
                if found:
                    row[place][library] = found
        best = report.best_peer(row)
        if best and "cohort_registered" in libraries:
            row["registered"] = self.ratio(best, "cohort_registered")
        return row


def cells_of(options, transport, ranks):
    return [Cell(transport, ranks, operation, size, options)
            for operation in options.ops for size in sizes_of(operation, ranks, options)]


def measure(running, cell, turns, options, trouble):
    """Lets the libraries take so many turns."""
    def leave_out(library, why):
        trouble.append(f"{why}")
        print(f"  {why}: left out until the next start", flush=True)
        running.pop(library).close()
        if library == "cohort":
            sys.exit("compare.sh: cohort's driver failed: " + trouble[-1])

    here = []
    for library, job in list(running.items()):
        if library in OVER_MPI_ALONE and cell.ranks != 2 and cell.operation not in ("latency", "bandwidth"):
            continue
        try:
            if library not in cell.found:
                cell.found[library] = calls_for(job, cell.asked, options)
                cell.wrong[library] = 0
            here.append(library)
        except jobs.Unsupported:
            continue
        except (jobs.Failed, OSError) as why:
            leave_out(library, why)
    # The first calls of a batch find the caches full of another library's, and take up to five times as long as those that follow:
    # where a batch is a few calls, who makes fewer is slower. So all make as many as the fastest, but for those far slower.
    most = {library: min(max(cell.found.values(), default=1), 3 * found) for library, found in cell.found.items()}
    for library in here:
        cell.calls.setdefault(library, most[library])
    for _ in range(turns):
        # Each turn starts with another library and every other goes the other way round, so that none always follows the same one.
        first = len(cell.turns) % len(here)
        order = here[first:] + here[:first]
        took = {}
        for library in reversed(order) if len(cell.turns) % 2 else order:
            if library not in running:
                continue
            calls = cell.calls[library]
            began = time.monotonic()
            try:
                seconds, bad = running[library].batch(*cell.asked, warm=max(1, min(20, calls // 4)), calls=calls)
            except (jobs.Failed, OSError) as why:
                leave_out(library, why)
                continue
            took[library] = seconds * 1e6
            cell.wrong[library] += bad
            # A library whose ranks wait for the scheduler may take a thousand times as long at one turn as at another;
            # the next turn is made for what this one took, or such libraries are most of what a comparison takes. Where only the
            # machine was busy, the batches grow again: in a few short calls there is little else than how the ranks begin.
            longer = (time.monotonic() - began) * 1000 / options.batch_ms
            if longer > 8:
                cell.calls[library] = max(1, int(calls / longer))
            elif longer < 0.5:
                cell.calls[library] = min(most[library], 4 * calls)
        cell.turns.append(took)


def rows_of(cells, rounds, starts, options, say, trouble):
    """Measures cells of one transport and number of ranks: so many turns, over so many starts of all ranks."""
    rows = []
    for start in range(starts):
        # Where ranks share cores, one start may take twice as long as another for all that is asked of it.
        running = start_jobs(options, cells[0].ranks, cells[0].transport, say)
        turns = rounds // starts + (start < rounds % starts)
        try:
            with jobs.busy_process(options.beside):
                for cell in cells:
                    measure(running, cell, turns, options, trouble)
                    if start == starts - 1:
                        rows.append(cell.row(options))
                        print(report.line(rows[-1]), flush=True)
        finally:
            for job in running.values():
                job.close()
    return rows


def measured_again(rows, options, say, trouble):
    """Rows of the same cells, of more turns over more starts. All turns of before are left out, of cells that were met as of
    those that were not: to add turns only to what had missed, or to keep the better of two runs, would make targets met by chance."""
    print(f"again, as their target lies between their quartiles: {len(rows)} cells", flush=True)
    groups = {}
    for row in rows:
        cell = Cell(row["transport"], row["ranks"], row["operation"], row["bytes"], options)
        groups.setdefault((cell.transport, cell.ranks), []).append(cell)
    return [row for cells in groups.values()
            for row in rows_of(cells, options.settle, 2 * options.starts, options, say, trouble)]


def summary(times):
    """Median, minimum, and first and third quartile."""
    ordered = sorted(times)
    quarter = len(ordered) // 4
    return {"median": statistics.median(ordered), "min": ordered[0], "q1": ordered[quarter],
            "q3": ordered[-1 - quarter], "batches": len(ordered)}


def floors(options):
    """What the machine allows without any library, measured now."""
    program = os.path.join(options.bin, "floors")
    done = subprocess.run([program, "--json"], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


def main(words):
    options = parse(words)
    rows, trouble, began = [], [], time.time()
    print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors", flush=True)
    limits = [] if options.quick else floors(options)
    for each in limits:
        print(report.floor_line(each), flush=True)
    print(report.header_line(), flush=True)
    said = set()

    def say_once(text):
        if text not in said:
            print(text, flush=True)
        said.add(text)

    for transport in options.transport:
        for ranks in options.ranks:
            rows += rows_of(cells_of(options, transport, ranks), options.rounds, options.starts, options, say_once, trouble)
    copying = targets.copying_of(limits, len(os.sched_getaffinity(0)))
    if options.settle:
        rows = report.replaced(rows, measured_again(targets.near(rows, copying), options, say_once, trouble))
    for each in trouble:
        print("trouble: " + each)
    if options.output:
        report.write(options, rows, limits, trouble, time.time() - began, targets.table(rows, copying))
    if any(count for row in rows for count in row["wrong"].values()):
        sys.exit("compare.sh: some results were wrong")


if __name__ == "__main__":
    main(sys.argv[1:])
