# SPDX-License-Identifier: BSL-1.0
"""What a comparison found, as lines on the terminal, Markdown, CSV, JSON and plots."""
import csv
import json
import os
import platform
import subprocess
import time

TITLES = {"cohort": "cohort", "cohort_registered": "registered", "bare": "bare", "bare_single": "bare, one copy",
          "bare_registered": "bare, reg.", "openmpi": "Open MPI", "mpich": "MPICH", "gloo": "Gloo",
          "openmpi_requests": "Open MPI, I", "mpich_requests": "MPICH, I",
          "bare_openmpi": "bare, Open MPI", "bare_mpich": "bare, MPICH", "cohort_openmpi": "over Open MPI", "cohort_mpich": "over MPICH"}
LIBRARIES = list(TITLES)
# The colour says which library, the line how it is asked.
LOOKS = {"cohort": ("tab:blue", "-"), "cohort_registered": ("tab:cyan", "-"), "bare": ("black", ":"),
         "bare_single": ("tab:gray", ":"), "bare_registered": ("tab:cyan", ":"), "openmpi": ("tab:orange", "-"),
         "mpich": ("tab:green", "-"), "gloo": ("tab:red", "-"), "openmpi_requests": ("tab:orange", "--"),
         "mpich_requests": ("tab:green", "--"), "bare_openmpi": ("tab:orange", ":"), "bare_mpich": ("tab:green", ":"),
         "cohort_openmpi": ("tab:orange", "-."), "cohort_mpich": ("tab:green", "-.")}


def size_text(count):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} B"


def key(row):
    """What tells a cell from the others."""
    return row["transport"], row["ranks"], row["operation"], row["bytes"]


def replaced(rows, others):
    """The rows, each of those that `others` has by the one there."""
    by_key = {key(row): row for row in others}
    return [by_key.get(key(row), row) for row in rows]


def cell_text(row):
    return f"{row['operation']} {size_text(row['bytes'])}, {row['ranks']} ranks"


def time_text(microseconds):
    digits = 3 if microseconds < 10 else 2 if microseconds < 100 else 1 if microseconds < 1000 else 0
    return f"{microseconds:.{digits}f}"


def is_peer(library):
    """Whether it is one that cohort is compared with, by the calls that its users make most."""
    return not library.startswith(("cohort", "bare")) and not library.endswith("_requests")


def best_peer(row):
    """The peer that was fastest, whose ratio counts."""
    peers = [l for l in row["ratios"]]
    return min(peers, key=lambda l: row["times"][l]["median"]) if peers else None


def over_mpi_text(row):
    """What cohort costs over MPI: its time there over that of the calls of MPI alone, and the difference."""
    return "; ".join(f"{TITLES[l]} {r['ratio']:.3f} ({r['q1']:.3f} to {r['q3']:.3f}), {r['difference']:+.2f} µs"
                     for l, r in row["over_mpi"].items())


def registered_text(row):
    """The same ratio, of cohort with its buffers registered."""
    r = row["registered"]
    return f"registered {r['ratio']:.2f} ({r['q1']:.2f} to {r['q3']:.2f})"


def header_line():
    names = "".join(f"{TITLES[l] + ' us':>17}" for l in LIBRARIES)
    return (f"{'':4}{'P':>2} {'operation':<15}{'size':>8}{names}   fastest peer / cohort (quartiles)"
            "; cohort over MPI / MPI")


def line(row):
    text = f"{row['transport']:<4}{row['ranks']:>2} {row['operation']:<15}{size_text(row['bytes']):>8}"
    for library in LIBRARIES:
        found = row["times"].get(library)
        text += f"{time_text(found['median']) if found else '-':>17}"
    best = best_peer(row)
    if best:
        r = row["ratios"][best]
        text += f"   {r['ratio']:.2f} ({r['q1']:.2f} to {r['q3']:.2f}) {TITLES[best]}"
    if row["registered"]:
        text += "; " + registered_text(row)
    if row["over_mpi"]:
        text += "; " + over_mpi_text(row)
    bad = {l: n for l, n in row["wrong"].items() if n}
    return text + (f"   WRONG {bad}" if bad else "")


def floor_line(floor):
    return f"floor: {floor['name']}: {floor['median']:.3f} {floor['unit']} (best {floor['best']:.3f})"


def first_line(words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
        return (done.stdout or done.stderr).strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "absent"


def machine():
    model, flags = "unknown", ""
    with open("/proc/cpuinfo", encoding="utf-8") as text:
        for each in text:
            if each.startswith("model name"):
                model = each.split(":", 1)[1].strip()
            elif each.startswith("flags"):
                flags = each.split(":", 1)[1]
    with open("/proc/meminfo", encoding="utf-8") as text:
        memory = int(text.readline().split()[1]) // (1 << 20)
    control = "/proc/sys/net/ipv4/tcp_congestion_control"
    with open(control, encoding="utf-8") as text:
        congestion = text.read().strip()
    return {
        "processor": model, "processors": len(os.sched_getaffinity(0)),
        "vectors": " ".join(f for f in ("avx2", "f16c", "avx512f", "avx512_bf16", "avx512_fp16") if f" {f}" in flags),
        "memory": f"{memory} GiB", "kernel": platform.release().split("-")[0], "TCP congestion control": congestion,
        "load at the end": " ".join(f"{x:.2f}" for x in os.getloadavg()),
        "compiler": first_line(["g++", "--version"]),
        "Open MPI": first_line(["mpirun.openmpi", "--version"]), "MPICH": first_line(["mpichversion"]),
        "Gloo": first_line(["dpkg-query", "-W", "libgloo-dev"]),
    }


def markdown(options, rows, limits, trouble, seconds, about, aims):
    out = [f"# {options.name}: cohort and its peers in one run", ""]
    out += [f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, {seconds / 60:.0f} minutes; elements "
            f"{options.type}, functor {options.functor}.", ""]
    out += ["| | |", "| --- | --- |"] + [f"| {k} | {v} |" for k, v in about.items()] + [""]
    if limits:
        out += ["| without any library | median | best |", "| --- | ---: | ---: |"]
        out += [f"| {f['name']} | {f['median']:.3f} {f['unit']} | {f['best']:.3f} {f['unit']} |" for f in limits] + [""]
    out += ["Medians in microseconds per call, the slowest rank's, over batches of back-to-back calls in which the "
            f"libraries take turns ({options.rounds} rounds, over {options.starts} starts of all ranks). Rooted operations rotate their root. " +
            (f"A process computed without a pause meanwhile, in {'the same' if options.beside == 'same' else 'another'} session. " if options.beside else "") +
            ("The inputs are the same all the time. " if options.unchanged else
             "Every rank writes its input anew before each call, as a program does that has computed it; that is not "
             "counted from 4 KiB on. ") +
            (f"Cells whose target lay between the quartiles of these rounds were measured again with {options.settle} rounds over "
             f"{2 * options.starts} starts, and only these count, whichever way they went. " if options.settle else "") +
            "A size is the larger of one rank's input and output. `latency` is half a round trip, `bandwidth` the time of a "
            "message in a window of up to 64. `fastest peer / cohort` is the fastest peer's median over cohort's, with the quartiles of "
            "the rounds; Gloo has TCP alone. `registered` is cohort with the same buffers registered. `bare` is no library: "
            "the bytes and the words or system calls that the operation needs, and nothing that finds mistakes, failures or "
            "who is slow (peers/bare.cpp); with one copy, by the kernel, instead of two through shared memory; with the "
            "buffers registered. `over ...` is cohort over that library, unchecked as MPI is "
            "(`COHORT_MPI_CHECK=never`); in the tables of shared memory its collectives go through memory of cohort's own and "
            "only its messages through MPI, in those of TCP all of it through MPI. The last column is its time over that of the same calls of MPI alone. `I` is MPI by "
            "the calls that return at once (MPI_Iallreduce, MPI_Isend and so on) and MPI_Test until they have ended, which is "
            "what an operation of cohort's replaces; MPI's blocking calls are often faster than its own of this kind. `bare, Open "
            "MPI` and so on is no library over MPI's messages, each behind a header (peers/bare_mpi.cpp, over TCP: of two ranks, and messages of more).", ""]
    out += aims
    for transport, ranks in dict.fromkeys((r["transport"], r["ranks"]) for r in rows):
        out += [f"## {'Shared memory' if transport == 'shm' else 'Loopback TCP'}, {ranks} ranks", "",
                "| operation | size | " + " | ".join(TITLES[l] for l in LIBRARIES) + " | fastest peer / cohort | over MPI / MPI |",
                "| --- | ---: |" + " ---: |" * len(LIBRARIES) + " :--- | :--- |"]
        for row in (r for r in rows if (r["transport"], r["ranks"]) == (transport, ranks)):
            cells = [time_text(row["times"][l]["median"]) if l in row["times"] else "-" for l in LIBRARIES]
            best = best_peer(row)
            r = row["ratios"].get(best)
            last = f"**{r['ratio']:.2f}** ({r['q1']:.2f} to {r['q3']:.2f}), {TITLES[best]}" if best else "-"
            last += f"; {registered_text(row)}" if row["registered"] else ""
            out += [f"| {row['operation']} | {size_text(row['bytes'])} | " + " | ".join(cells) +
                    f" | {last} | {over_mpi_text(row) or '-'} |"]
        out += [""]
    wrong = sum(n for r in rows for n in r["wrong"].values())
    out += [f"Wrong elements: {wrong}."] + [f"Trouble: {each}." for each in trouble]
    return "\n".join(out) + "\n"


def write(options, rows, limits, trouble, seconds, aims):
    """`aims`: lines of Markdown that stand before the tables."""
    os.makedirs(options.output, exist_ok=True)
    about = machine()
    stem = os.path.join(options.output, options.name)
    with open(stem + ".md", "w", encoding="utf-8") as text:
        text.write(markdown(options, rows, limits, trouble, seconds, about, aims))
    with open(stem + ".json", "w", encoding="utf-8") as text:
        json.dump({"machine": about, "type": options.type, "functor": options.functor, "rounds": options.rounds,
                   "starts": options.starts, "settle": options.settle, "beside": options.beside, "floors": limits, "rows": rows, "trouble": trouble}, text, indent=1)
    with open(stem + ".csv", "w", encoding="utf-8", newline="") as text:
        table = csv.writer(text)
        table.writerow(["transport", "ranks", "operation", "bytes", "type", "functor", "library", "median_us", "min_us",
                        "q1_us", "q3_us", "batches", "wrong", "ratio_to_cohort"])
        for row in rows:
            for library, t in row["times"].items():
                r = row["ratios"].get(library)
                table.writerow([row["transport"], row["ranks"], row["operation"], row["bytes"], row["type"],
                                row["functor"], library] + [f"{t[k]:.4f}" for k in ("median", "min", "q1", "q3")] +
                               [t["batches"], row["wrong"].get(library, 0), f"{r['ratio']:.4f}" if r else ""])
    print(f"written: {stem}.md, .csv, .json")
    plot(options, rows, stem)


def plot(options, rows, stem):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("skipped: plots, as matplotlib is not installed (Debian: python3-matplotlib)")
        return
    for operation in dict.fromkeys(r["operation"] for r in rows):
        cells = [r for r in rows if r["operation"] == operation]
        cases = list(dict.fromkeys((r["transport"], r["ranks"]) for r in cells))
        if len({r["bytes"] for r in cells}) < 2:
            continue
        columns = min(3, len(cases))
        lines = (len(cases) + columns - 1) // columns
        figure, axes = pyplot.subplots(lines, columns, figsize=(5 * columns + 1.7, 3.8 * lines), squeeze=False)
        for axis in axes.flat[len(cases):]:
            axis.set_visible(False)
        shown = {}
        for axis, (transport, ranks) in zip(axes.flat, cases):
            for library in LIBRARIES:
                points = [(r["bytes"], r["times"][library]) for r in cells
                          if (r["transport"], r["ranks"]) == (transport, ranks) and library in r["times"]]
                if not points:
                    continue
                x = [p[0] for p in points]
                color, style = LOOKS[library]
                shown[library], = axis.plot(x, [p[1]["median"] for p in points], marker="o", markersize=3, color=color,
                                            linestyle=style, linewidth=2.2 if library == "cohort" else 1.2,
                                            zorder=3 if library == "cohort" else 2)
                axis.fill_between(x, [p[1]["q1"] for p in points], [p[1]["q3"] for p in points], alpha=0.15, color=color)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_title(f"{operation}, {'shared memory' if transport == 'shm' else 'loopback TCP'}, {ranks} ranks")
            axis.set_xlabel("bytes")
            axis.set_ylabel("µs per call")
            axis.grid(True, which="major", alpha=0.3)
        # One for all of them, beside them: in one of them it would lie on lines.
        names = [l for l in LIBRARIES if l in shown]
        figure.legend([shown[l] for l in names], [TITLES[l] for l in names], loc="center right", fontsize=9)
        figure.tight_layout(rect=(0, 0, 1 - 1.7 / figure.get_figwidth(), 1))
        figure.savefig(f"{stem}_{operation}.png", dpi=110)
        pyplot.close(figure)
    print(f"written: {stem}_*.png")
