"""Contextual bandits: rewards, regret and steps per second, compared with published results.

    python -m benchmarks.bandits --data FOLDER --json benchmarks/bandits.json
    python -m benchmarks.bandits --write

The first takes half an hour; without ``--data`` it runs the tasks on synthetic data only. The second writes the table
of docs/evidence/bandits.md and docs/images/bandits.png from what the first found. FOLDER has ``mnist`` (its four files)
and ``bandits`` (statlog.npz, covertype.npz, adult.npz). In the tasks with data the arms are the labels of rows, and
only the reward of the chosen arm is seen. All tasks use the same defaults.
"""

import argparse
import json
from pathlib import Path

from benchmarks.bandits import page
from benchmarks.bandits.catalogue import ENTRIES
from benchmarks.bandits.measure import Outcome, measure
from onepass.files.atomic import write_atomically


def main() -> None:
    """Measure the tasks, or write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bandits", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--data", type=Path, help="folder with mnist/ and bandits/")
    parser.add_argument("--tasks", nargs="+", choices=ENTRIES, help="names of tasks; all that can be run by default")
    parser.add_argument("--seeds", type=int, help="runs of each task; by default as many as in the published results")
    parser.add_argument("--steps", type=int, help="steps of each run, for a short trial; by default those of the task")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--write", action="store_true", help="write the page from the stored results")
    options = parser.parse_args()
    if options.write:
        page.write()
        return
    runnable = [name for name, entry in ENTRIES.items() if options.data is not None or entry.folder is None]
    asked = options.tasks or runnable
    needing = [name for name in asked if name not in runnable]
    if needing:
        parser.error(f"--data is needed for {', '.join(needing)}")
    found: list[Outcome] = []
    for outcome in measure(options.data, asked, options.seeds, options.steps):
        if outcome.task not in [one.task for one in found]:
            entry = ENTRIES[outcome.task]
            print(f"{outcome.task}: {entry.title}" + (f" (published: {entry.published})" if entry.published else ""))
        print(_line(outcome), flush=True)
        found.append(outcome)
    if options.json is not None:
        write_atomically(options.json, (json.dumps([one.numbers() for one in found], indent=1) + "\n").encode())


def _line(outcome: Outcome) -> str:
    (mean, error), (regret, regret_error) = outcome.reward, outcome.regret
    total = ENTRIES[outcome.task].total
    reward = f"{mean:,.0f} ± {error:,.0f}" if total else f"{mean:.4f} ± {error:.4f}"
    return (
        f"  {outcome.player:38} {reward:>18}   regret {regret:9,.0f} ± {regret_error:,.0f} "
        f"(best fixed arm {outcome.fixed_arm:,.0f})   {outcome.steps_per_second:7,.0f} steps/s"
    )


if __name__ == "__main__":
    main()
