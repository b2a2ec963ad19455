#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What cohort means to be faster than its peers by, and in how many cells a run has it: the first table of a comparison.

Usage: targets.py RESULTS.json     the same of a run that was written before, with every cell that misses its target
"""
import json
import sys

import report

KIB, MIB = 1 << 10, 1 << 20
OTHERS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "barrier", "scan")


def cells(transport, ranks, operations, sizes):
    """Of the rows of a run those that a target is about; `sizes` is a function of bytes."""
    return lambda row: (row["transport"] in transport and row["ranks"] in ranks and row["operation"] in operations and
                        sizes(row["bytes"]))


# What it is about, the rows, how much faster than the fastest peer at least, and whether in registered buffers.
TARGETS = [
    ("all_reduce in memory, 2 ranks, 8 B", cells(["shm"], [2], ["all_reduce"], lambda b: b == 8), 1.5, False),
    ("512 B to 64 KiB", cells(["shm"], [2], ["all_reduce"], lambda b: 512 <= b <= 64 * KIB), 2.0, False),
    ("256 KiB to 64 MiB", cells(["shm"], [2], ["all_reduce"], lambda b: b >= 256 * KIB), 1.5, False),
    ("2 to 64 MiB, registered", cells(["shm"], [2], ["all_reduce"], lambda b: b >= 2 * MIB), 3.0, True),
    ("2 to 64 MiB, registered, 4 and 8 ranks", cells(["shm"], [4, 8], ["all_reduce"], lambda b: b >= 2 * MIB), 8.0, True),
    ("8 B, 4 ranks", cells(["shm"], [4], ["all_reduce"], lambda b: b == 8), 1.5, False),
    ("8 B, 8 ranks", cells(["shm"], [8], ["all_reduce"], lambda b: b == 8), 3.0, False),
    ("all_reduce over TCP, 2 ranks, 8 B", cells(["tcp"], [2], ["all_reduce"], lambda b: b == 8), 1.5, False),
    ("256 KiB", cells(["tcp"], [2], ["all_reduce"], lambda b: b == 256 * KIB), 1.6, False),
    ("2 to 64 MiB", cells(["tcp"], [2], ["all_reduce"], lambda b: b >= 2 * MIB), 1.25, False),
    ("every other collective in memory, 2 ranks", cells(["shm"], [2], OTHERS, lambda b: True), 1.2, False),
    ("4 ranks", cells(["shm"], [4], OTHERS, lambda b: True), 1.2, False),
    ("every other collective over TCP, 2 ranks", cells(["tcp"], [2], OTHERS, lambda b: True), 1.2, False),
    ("4 ranks", cells(["tcp"], [4], OTHERS, lambda b: True), 1.2, False),
    ("messages in memory, half a round trip, 2 ranks", cells(["shm"], [2], ["latency"], lambda b: True), 1.2, False),
    ("in a window, 1 MiB", cells(["shm"], [2], ["bandwidth"], lambda b: b == MIB), 1.2, False),
    ("messages over TCP, half a round trip, 2 ranks", cells(["tcp"], [2], ["latency"], lambda b: True), 1.2, False),
    ("in a window, 1 MiB", cells(["tcp"], [2], ["bandwidth"], lambda b: b == MIB), 1.2, False),
]
# Of cohort over MPI, its time over that of MPI's own calls: from 64 KiB on, and how much longer 8 B take.
MOST_OVER_MPI, MOST_MICROSECONDS_OVER_MPI = 1.02, 0.3


def ratios_of(row, registered):
    """How many times as long the fastest peer takes, as "ratio" with its quartiles, or None where that was not measured."""
    best = report.best_peer(row)
    return row["registered"] if registered else row["ratios"].get(best) if best else None


def limit_of(row, registered):
    """How many times as long the fastest peer takes as the same without any library; None where that was not measured."""
    best = report.best_peer(row)
    libraries = ("bare_registered",) if registered else ("bare", "bare_single")
    least = min((row["times"][l]["median"] for l in libraries if l in row["times"]), default=None)
    return row["times"][best]["median"] / least if best and least else None


def copy_limit(row, copying):
    """The same over the time in which the cores copy as many bytes as an all_reduce in registered buffers has to read and to
    write, each rank's vector and each rank's result once; None where that was not measured, or the row is about something else.
    `copying`: how many cores there are, and how many bytes a microsecond each copies while all do, by how many at a time."""
    cores, rates = copying
    best = report.best_peer(row)
    if not best or not rates or row["operation"] != "all_reduce":
        return None
    each = row["ranks"] * row["bytes"] / min(row["ranks"], cores)
    # What is copied at a time stays in caches, or does not.
    rate = next((rates[size] for size in sorted(rates) if each <= size), rates[max(rates)])
    return row["times"][best]["median"] / (2 * each / rate)


def copying_of(floors, cores):
    """What copy_limit takes, of what floors prints."""
    sizes = {"copy of 4 MiB by each core while all do": 4 * MIB, "copy of 16 MiB by each core while all do": 16 * MIB,
             "the same past the caches, all cores": 16 * MIB}
    rates = {}
    for each in floors:
        size = sizes.get(each["name"])
        if size:
            rates[size] = max(rates.get(size, 0), each["best"] * 1e3)
    return cores, rates


OUT_OF_REACH, WITHIN_SPREAD = "out of reach", "within the spread"


def why_missed(far, near):
    """Of a cell that misses its target, what else is to be said."""
    return OUT_OF_REACH if far else WITHIN_SPREAD if near else ""


def out_of_reach(ratio, limit, least):
    """Whether a cell that misses its target would without any library. What was written without one says nothing where a
    library is faster than it, but for the twentieth that two runs of one program differ by."""
    return limit is not None and 1 <= limit < least and ratio <= 1.05 * limit


def measured(rows, copying, applies, least, registered):
    """(ratio, limit, row, why it misses or None) of each cell, the worst first."""
    found = []
    for row in filter(applies, rows):
        r, limit = ratios_of(row, registered), limit_of(row, registered)
        if r:
            missed = r["ratio"] < least
            if registered and missed and not out_of_reach(r["ratio"], limit, least):
                copied = copy_limit(row, copying)
                limit = copied if out_of_reach(r["ratio"], copied, least) else limit
            why = why_missed(out_of_reach(r["ratio"], limit, least), r["q3"] >= least) if missed else None
            found.append((r["ratio"], limit, row, why))
    return sorted(found, key=lambda each: each[0])


def least_over_mpi(row, library):
    """The least time beside `library` of what can be awaited and whose messages are held against their receives, or None: a
    message behind a header, and of collectives MPI's own calls that return at once, in which nothing is checked."""
    if row["transport"] != "tcp":
        return None  # in memory MPI carries nothing
    mpi = library.removesuffix("_requests")
    found = [f"bare_{mpi}"] + ([f"{mpi}_requests"] if row["operation"] not in ("latency", "bandwidth") else [])
    least = min((row["times"][l]["median"] for l in found if l in row["times"]), default=None)
    # Where cohort is faster than they are, they are no limit.
    return least if least is not None and least <= 1.05 * row["times"][f"cohort_{mpi}"]["median"] else None


def over_mpi(rows):
    """(what, at most, unit, cells) of cohort over MPI beside the same calls of MPI alone; cells as (value, the least possible
    or None, its name, why it misses or None), the worst first."""
    def cell(row, library, r, most):
        alone, least = row["times"][library]["median"], least_over_mpi(row, library)
        relative = most > 1
        value, better = (r["ratio"], r["q1"]) if relative else (r["difference"], (r["q1"] - 1) * alone)
        limit = None if least is None else least / alone if relative else least - alone
        why = why_missed(limit is not None and limit > most, better <= most) if value > most else None
        return value, limit, f"{report.cell_text(row)}, {report.TITLES[library]}", why

    for where, transport, ranks in (("in memory", "shm", [2]), ("in memory, 4 and 8 ranks", "shm", [4, 8]),
                                    ("over MPI's TCP", "tcp", [2]), ("over MPI's TCP, 4 and 8 ranks", "tcp", [4, 8])):
        for words, sizes, most, unit in ((f"over MPI, {where}, from 64 KiB", lambda b: b >= 64 * KIB, MOST_OVER_MPI, ""),
                                         (f"over MPI, {where}, 8 B", lambda b: b == 8, MOST_MICROSECONDS_OVER_MPI, " µs more")):
            here = [cell(row, l, r, most) for row in rows for l, r in row["over_mpi"].items()
                    if row["transport"] == transport and row["ranks"] in ranks and sizes(row["bytes"])]
            if here:
                yield words, most, unit, sorted(here, key=lambda each: -each[0])


def near(rows, copying):
    """The rows for which another run of as many turns may find otherwise: a target lies between the quartiles of their turns.
    Of cohort over MPI those of two ranks, as among ranks that share cores that is so of nearly all."""
    found = {}

    def look(row, quartiles, least):
        if quartiles["q1"] < least <= quartiles["q3"]:
            found[report.key(row)] = row

    for _, applies, least, registered in TARGETS:
        for ratio, limit, row, _ in measured(rows, copying, applies, least, registered):
            look(row, ratios_of(row, registered), least)
    for row in rows:
        if row["ranks"] != 2:
            continue
        for library, r in row["over_mpi"].items():
            if row["bytes"] >= 64 * KIB:
                look(row, r, MOST_OVER_MPI)
            elif row["bytes"] == 8:
                look(row, r, 1 + MOST_MICROSECONDS_OVER_MPI / row["times"][library]["median"])
    return list(found.values())


def limit_text(limit):
    return f" (limit {limit:.2f})" if limit is not None else ""


def why_text(why):
    return f", {why}" if why else ""


def counts_text(cells):
    """How many there are, and are met, out of reach and within the spread."""
    reasons = [why for *_, why in cells]
    return " | ".join(str(n) for n in (len(cells), *map(reasons.count, (None, OUT_OF_REACH, WITHIN_SPREAD))))


def table(rows, copying):
    """Lines of Markdown; none where the run had no cell of any target."""
    lines = []
    for words, applies, least, registered in TARGETS:
        found = measured(rows, copying, applies, least, registered)
        if found:
            worst, limit, row, _ = found[0]
            lines.append(f"| {words} | {least:g} | {counts_text(found)} | {sum(r < 1 for r, *_ in found)} | "
                         f"{worst:.2f}{limit_text(limit)}: {report.cell_text(row)} |")
    for words, most, unit, found in over_mpi(rows):
        value, limit, name, _ = found[0]
        lines.append(f"| {words} | {most:g}{unit} at most | {counts_text(found)} | | "
                     f"{value:.2f}{unit}{limit_text(limit)}: {name} |")
    if not lines:
        return []
    return ["What is aimed at: how many times as long the fastest peer takes (of cohort over MPI: its time over MPI's alone, by "
            "its blocking calls and by those that return at once). Out of reach are cells that miss their target and would "
            "without any library, by the columns `bare`: the limit is the fastest peer's time over the fastest of these. Where a "
            "library is faster than they are, they are no limit, and the cell does not count as out of reach; of registered buffers "
            "it does where the cores cannot copy as fast, each rank's vector and result once. Over MPI the limit "
            "is the least of `bare, Open MPI` or `bare, MPICH` and, for collectives, of MPI's own calls that return at once. Of the "
            "other cells that miss, those within the spread have their target between the median and the better quartile of the "
            "turns: one more run may tell otherwise.", "",
            "| cells | target | measured | met | out of reach | within the spread | slower than a peer | the worst |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | :--- |"] + lines + [""]


def main(words):
    if len(words) != 1 or words[0].startswith("-"):
        sys.exit(__doc__.strip())
    with open(words[0], encoding="utf-8") as text:
        run = json.load(text)
    rows, copying = run["rows"], copying_of(run["floors"], run["machine"]["processors"])
    print("\n".join(table(rows, copying)))
    for _, applies, least, registered in TARGETS:
        for ratio, limit, row, why in measured(rows, copying, applies, least, registered):
            if why is not None:
                print(f"{ratio:.2f} of {least:g}{limit_text(limit)}: {row['transport']}, {report.cell_text(row)}"
                      f"{', registered' if registered else ''}{why_text(why)}")
    for words, most, unit, found in over_mpi(rows):
        for value, limit, name, why in found:
            if why is not None:
                print(f"{value:.2f}{unit} of {most:g} at most{limit_text(limit)}: {words}: {name}{why_text(why)}")


if __name__ == "__main__":
    main(sys.argv[1:])
