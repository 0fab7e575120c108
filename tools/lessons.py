"""Writes examples/lessons.ipynb, the lessons of the lab for teachers, from web/lessons.json; or checks that it is up to date (--check).

A task asks in the page what it asks here: each predicate below is that of web/lessons.js, in Python.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "web" / "lessons.json"
NOTEBOOK = ROOT / "examples" / "lessons.ipynb"

HEAD = """# Seven lessons on TCP

The lessons of the lab (`ackclock lab`), for teachers: each has a text, a scenario, its figure, and tasks. Below each task stands an answer, and a line
that fails if the run does not show what was asked. Remove the answers before you hand the notebook on.

It needs an environment in which `import ackclock` works, and takes some seconds.
"""

SETUP = '''import tomllib

import matplotlib.pyplot as plt

import ackclock


def play(text, seed=1):
    """Run the scenario with this text."""
    scenario = ackclock.Scenario.from_dict(tomllib.loads(text))
    often = {"record.sample_interval": "5 ms", "record.queue_interval": "5 ms"}
    return ackclock.run(scenario.set_all(often), seed=seed)


def draw(run):
    """cwnd of each flow, and the longest queue."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 4.2), sharex=True, layout="constrained")
    for flow in run.flows["flow"]:
        own = run.samples.filter(flow=flow)
        above.step(own["t_s"], own["cwnd"], where="post", label=f"{flow} {run.flows['congestion_control'][int(flow)]}")
    longest = int(run.links["max_packets"].arg_max())
    queue = run.queue_samples.filter(link=longest)
    below.step(queue["t_s"], queue["packets"], where="post", color="C2")
    above.set(ylabel="cwnd (segments)")
    below.set(ylabel="queue (packets)", xlabel="time (s)")
    above.legend()
    return figure'''

HOLDS = {
    "slow-start": [
        'run.flows["slow_start_lost"][0] > 150',
        'run.flows["slow_start_lost"][0] < 10',
    ],
    "recovery": [
        'run.recoveries["max_burst"].max() == 1',
        'run.recoveries["max_burst"].max() <= 2 and run.flows["completion_s"][0] < 0.7',
    ],
    "fairness": [
        '0.8 < run.flows["goodput_bps"][0] / run.flows["goodput_bps"][1] < 1.25',
        '"40 ms" in text and run.flows["goodput_bps"][0] > 5 * run.flows["goodput_bps"][1]',
    ],
    "bufferbloat": [
        '"drop-tail" in text and run.flows["mean_rtt_s"][0] < 0.05 and run.flows["goodput_bps"][0] > 9e6',
        '"500 packets" in text and "drop-tail" not in text and run.flows["mean_rtt_s"][0] < 0.05 and run.flows["goodput_bps"][0] > 8.9e6',
    ],
    "bbr": [
        'run.flows["goodput_bps"].is_between(8e6, 12e6).all()',
        'run.flows["goodput_bps"][0] > 3 * run.flows["goodput_bps"][1]',
    ],
    "l4s": [
        'run.flows["mean_rtt_s"][0] < 0.015 and run.flows["goodput_bps"].min() > 7e6',
    ],
    "initial-window": [
        'run.flows["completion_s"][0] < 0.35',
        '"20 packets" in text and run.flows["retransmissions"][0] > 0 and run.flows["completion_s"][0] > 0.6',
    ],
}  # fmt: skip
"""By lesson and task: what the run has to show."""


def cells() -> list[dict[str, Any]]:
    """All cells, in order."""
    made = [markdown("head", HEAD), code("setup", SETUP)]
    for lesson in json.loads(LESSONS.read_text(encoding="utf-8")):
        name = lesson["id"]
        made.append(markdown(name, f"## {lesson['title']}\n\n" + "\n\n".join(lesson["text"])))
        body = lesson["scenario"].rstrip("\n")
        made.append(code(f"{name}-run", f"lesson = '''\n{body}\n'''\n\nrun = play(lesson)\ndraw(run);"))
        for number, (task, holds) in enumerate(zip(lesson["tasks"], HOLDS[name], strict=True), 1):
            made.append(markdown(f"{name}-task-{number}", f"**Task.** {task['ask']}"))
            changes = "".join(f".replace({json.dumps(old)}, {json.dumps(new)})" for old, new in task["solved"])
            answer = f"text = lesson{changes}  # an answer\nrun = play(text)\ndraw(run)\nassert {holds}"
            made.append(code(f"{name}-answer-{number}", answer))
    return made


def markdown(name: str, text: str) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text.strip().splitlines(keepends=True)}


def code(name: str, text: str) -> dict[str, Any]:
    """A cell of Python, without outputs."""
    source = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": [], "source": source}


def notebook() -> str:
    """The file."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells(), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    text = notebook()
    if "--check" not in sys.argv[1:]:
        NOTEBOOK.write_text(text, encoding="utf-8")
    elif not NOTEBOOK.exists() or NOTEBOOK.read_text(encoding="utf-8") != text:
        print("examples/lessons.ipynb: not up to date; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
