"""The measured tables of the README and of docs/, made from the records in results/ and in the zoo alone.

python tools/docs_tables.py --record
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))
import overview
import published

from qornn import zoo
from qornn.demo.run import table, verdict

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
BLOCK = re.compile(r"(<!-- measured: ([\w-]+),.*? -->\n).*?(<!-- /measured -->)", re.DOTALL)
PEERS = {  # keys of results/bench-infer.json
    "ort_rnn_float": "plain RNN, float32, onnxruntime",
    "ort_lstm_int8": "LSTM, int8, onnxruntime",
    "torch_rnn_float": "plain RNN, float32, torch",
    "torch_lstm_int8": "LSTM, int8, torch",
    "ours_in_ort": "qornn exported to ONNX, onnxruntime",
}
MLPERF = 90  # percent, what MLPerf Tiny asks for on its clips
ON_DEVICE = ("instructions per step", "per readout", "flash", "RAM", "stack", "bit-exact")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--record", action="store_true", help="write the tables into the pages; by default they are printed"
    )
    options = parser.parse_args()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if options.record:
            page.write_text(with_tables(text), encoding="utf-8")
        else:
            print(*(f"{page.name}: {name}\n\n{TABLES[name]()}\n" for _, name, _ in BLOCK.findall(text)), sep="\n")


def pages() -> list[Path]:
    """The pages that hold such tables."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [p for p in found if BLOCK.search(p.read_text(encoding="utf-8"))]


def with_tables(page: str) -> str:
    """The page with every table made again."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{TABLES[m[2]]()}\n\n{m[3]}", page)


def demo() -> str:
    """What `make demo` measured."""
    seen = _record("demo.json")
    return f"{table(seen['rows'])}\n\n{verdict(seen['devices'])}"


def host() -> str:
    """Inference on the host, one sequence at a time."""
    found = _record("bench-infer.json")
    lines = []
    for n_h, ours in found["host"].items():
        lines.append([n_h, f"qornn, {found['bits']} bits", ours["us_per_step"], "1", f"{ours['model_bytes']:,}"])
        for key, name in PEERS.items():
            peer = ours["peers"][key]
            ratio = f"{peer['us_per_step'] / ours['us_per_step']:.1f}"
            lines.append([n_h, name, peer["us_per_step"], ratio, f"{peer['model_bytes']:,}"])
        lines.append([n_h, "qornn, sample by sample from Python (`session`)", ours["us_per_step_session"], "", ""])
    columns = ["n_h", "network", "µs per step", "times ours", "bytes of the file"]
    return f"{_table(columns, lines)}\n\nEngine: {found['engine']}; medians of {found['repeats']} repeats."


def devices() -> str:
    """Emulated microcontrollers, float and 8-bit readout."""
    found = _record("bench-infer.json")
    readouts = {"float": found["mcu"], "8 bits": found["mcu_int8_readout"]}
    lines = [
        [target, readout, *_on_device(seen)] for readout, all_ in readouts.items() for target, seen in all_.items()
    ]
    return _table(["target", "readout", *ON_DEVICE], lines)


def avr() -> str:
    """Networks on an Arduino Uno's chip."""
    found = _record("avr.json")
    lines = []
    for name, seen in found["networks"].items():
        counts = [f"{seen[key]:,}" for key in ("cycles_per_step", "cycles_per_sample")]
        times = [f"{seen[key]:.2f}" for key in ("ms_per_sample", "ms_per_readout")]
        memory = [f"{seen[f'{what}_bytes']:,}" for what in ("flash", "ram", "stack")]
        read = f"{seen['samples_per_step']} × {seen['channels']}"
        exact = "yes" if seen["exact"] else "no"
        lines.append([name, f"{seen['bytes']:,}", read, *counts, *times, *memory, exact])
    columns = ["network", "weights, bytes", "samples × channels per step", "cycles per step", "per sample"]
    columns += ["ms per sample", "ms per readout", "flash", "RAM", "stack", "bit-exact"]
    return f"{_table(columns, lines)}\n\n{found['chip']} at 16 MHz, {found['compiler']} -Os."


def structured() -> str:
    """Structured networks on the same microcontrollers."""
    found = _record("bench-infer.json")["structured"]
    lines = [
        [kind, ours["n_h"], target, *_on_device(seen)]
        for kind, ours in found.items()
        for target, seen in ours["mcu"].items()
    ]
    return _table(["map", "n_h", "target", *ON_DEVICE], lines)


def training() -> str:
    """A training step against torch's own, and an epoch against the paper's."""
    found = _record("bench-train.json")
    lines = []
    for name, seen in found["shapes"].items():
        ratios = [f"{seen[f'step_vs_{peer}']:.1f}" for peer in ("nn_rnn", "autograd")]
        minutes = [seen["epoch_minutes"], seen["paper_gpu_epoch_minutes"]]
        lines.append([name, *ratios, f"{seen['memory_vs_autograd']:.2f}", *minutes])
    against = ["step, against `nn.RNN`", "step, against autograd", "memory, against autograd"]
    return _table(["shape", *against, f"minutes per epoch, {found['threads']} threads", "the paper's, on a GPU"], lines)


def cells() -> str:
    """The cells of the paper's tables that were trained, beside its figures."""
    lines = []
    for path in sorted((RESULTS / "cells").glob("*.json")):
        cell = json.loads(path.read_text(encoding="utf-8"))
        verdict = "" if cell["converged"] else ", NC"
        integer = cell.get("integer") or {}
        share = f"{100 * cell['fraction']:.3g} %, {cell['schedule']}"
        figures = [_figure(cell.get(key)) for key in ("paper", "value")]
        lines.append([cell["id"], cell["metric"], *figures, _figure(integer.get("value")), share])
        lines[-1][3] += verdict
    columns = ["cell", "metric", "paper", "measured", "12-bit integers", "of the paper's training"]
    return _table(columns, lines)


def programs() -> str:
    """The zoo."""
    lines = []
    for name in zoo.names():
        seen = zoo.record(name)
        bits = f"{seen['bits']}, states {seen['activation_bits']}"
        figures = [_figure(seen["value"]), _figure(seen["baseline"])]
        lines.append([f"`zoo:{name}`", seen["task"], bits, seen["metric"], *figures, f"{seen['true_bytes']:,}"])
    return _table(["name", "task", "bits", "metric", "value, in integers", "naive", "bytes"], lines)


def real() -> str:
    """Real recordings: a stack of rotations, the single layer, and an LSTM of as many units as that."""
    lines, stacks = [], _record("stacks.json")
    for name, seen in _record("real.json").items():
        single, lstm, simple = (seen["methods"][key] for key in ("qornn", "lstm", "logistic"))
        stack = {"accuracy": stacks[name]["accuracy"], "bytes": max(run["bytes"] for run in stacks[name]["runs"])}
        accuracy = [f"{m['accuracy']:.1f} %" for m in (stack, single, lstm, simple)]
        sizes = [f"{m['bytes']:,}" for m in (stack, single, lstm)]
        lines.append([name, f"{seen['samples']} × {seen['channels']}", *accuracy, *sizes])
    networks = ["stack, 4-bit integers", "single layer, 4-bit integers", "LSTM, float32", "features"]
    sizes = [f"bytes of the {network}" for network in ("stack", "single layer", "LSTM")]
    return _table(["recordings", "samples × channels", *networks, *sizes], lines)


def uno() -> str:
    """Human activity on an Arduino Uno's chip, beside what was published for it."""
    lines = []
    for name, seen in _record("uno.json").items():
        runs = seen["runs"]
        largest = {key: max(run[key] for run in runs) for key in ("bytes", "ms_per_sample", "flash_bytes", "ram_bytes")}
        scores = [f"{seen[key]:.3f}" for key in ("mean", "best", "worst")]
        sizes = [f"{largest['bytes']:,}", f"{largest['ms_per_sample']:.2f}"]
        warm = f"{max(run['warm_up']['median'] for run in runs)}"
        memory = [f"{largest[key]:,}" for key in ("flash_bytes", "ram_bytes")]
        lines.append([f"stack, {name}", *scores, *sizes, warm, *memory])
    other = published.UNO
    figures = [other.score, published.UNO_BEST, "–", other.size, published.UNO_MILLISECONDS, published.UNO_LATENCY]
    lines.append([f"{other.network}, as published", *figures, "–", "–"])
    columns = ["network", "macro-F1, mean of five seeds", "best", "worst", "bytes of weights", "ms per sample"]
    return _table([*columns, "samples until right: median, worst seed", "flash", "RAM"], lines)


def stacks() -> str:
    """Stacks of rotations on real recordings: five seeds, in integers."""
    lines = []
    others = _record("real.json")
    for name, seen in _record("stacks.json").items():
        runs = seen["runs"]
        seeds = ", ".join(f"{run['accuracy']:.1f}" for run in runs)
        largest = {key: max(run[key] for run in runs) for key in ("bytes", "instructions_per_sample")}
        beside = [f"{others[name]['methods'][method]['accuracy']:.1f}" for method in ("qornn", "lstm", "logistic")]
        figures = [f"{seen['accuracy']:.1f}", seeds, f"{largest['bytes']:,}", f"{largest['instructions_per_sample']:,}"]
        lines.append([name, *figures, *beside, f"{seen['seconds']:.0f}"])
    columns = ["recordings", "accuracy, %", "every seed", "bytes", "instructions per sample, Cortex-M4"]
    return _table([*columns, "one layer", "LSTM, float32", "features", "seconds of training"], lines)


def har_tried() -> str:
    """All settings that were tried for human activity, on held-out people of the training part."""
    lines = []
    for i, seen in enumerate(_record("stacks.json")["har"]["validation"]):
        own = {key: value for key, value in seen["settings"].items() if key != "validation_fraction"}  # 0 in all
        words = ", ".join(f"`{key}={value!r}`" for key, value in own.items())
        parts = ", ".join(f"{value:.1f}" for value in seen["folds"])
        lines.append([words if i else f"**chosen**: {words}", f"{seen['accuracy']:.1f}", parts])
    return _table(["settings", "mean accuracy, %", "each fifth of the people"], lines)


def har_stream() -> str:
    """Whole recordings of the test people, sample by sample through the C."""
    seen = _record("stream-har.json")
    warm_up = seen["warm_up"]
    lines = [
        ["test people", seen["people"]],
        ["samples", f"{seen['samples']:,}"],
        ["answers of the C that differ from Python", seen["differences"]],
        [f"accuracy after {seen['reset']} samples, %", f"{seen['accuracy']:.1f}"],
        [f"accuracy of the {warm_up['sequences']:,} sequences of one activity, %", f"{warm_up['accuracy']:.1f}"],
        *(
            [f"warm-up latency, {name}", f"{warm_up[key]} samples, {warm_up[f'{key}_seconds']:.2f} s"]
            for name, key in (("median", "median"), ("90th percentile", "p90"))
        ),
        ["bytes of the network", f"{seen['true_bytes']:,}"],
        ["bytes of its state, and of a window of samples", f"{seen['state_bytes']}, {seen['window_bytes']}"],
    ]
    return _table(["streamed", ""], lines)


HEARTBEATS = {  # keys of results/ecg.json
    "stack": "stack, 4-bit weights, integers",
    "logistic": "logistic regression on features, float",
    "lstm": "LSTM, float32",
}
BEAT_SCORES = ("balanced_accuracy", "recall_N", "recall_S", "precision_S", "recall_V", "precision_V")
BEAT_COLUMNS = ("balanced accuracy of N, S, V, %", "recall N", "recall S", "precision S", "recall V", "precision V")


def heartbeats() -> str:
    """Heartbeats of patients that were not trained on: every seed, then what the network takes."""
    lines, medians = [], []
    for name, seen in _record("ecg.json")["test"].items():
        method, _, rr = name.partition(", ")
        medians.append(f"{name} {seen['balanced_accuracy']:.1f}")
        for run in seen["runs"]:
            figures = [f"{run[key]:.1f}" for key in (*BEAT_SCORES, "balanced_accuracy_of_five")]
            sizes = [f"{run['bytes']:,}", _count(run.get("instructions_per_sample"))]
            seed = run.get("seed", "–")
            lines.append([HEARTBEATS[method], rr or "–", seed, *figures, *sizes, f"{run['seconds']:.0f}"])
    columns = [*BEAT_COLUMNS, "balanced accuracy of all five", "bytes", "instructions per sample, Cortex-M4", "seconds"]
    table = _table(["method", "intervals", "seed", *columns], lines)
    return f"{table}\n\nMedian balanced accuracy of N, S and V: {'; '.join(medians)} %. Trained on one thread."


def heartbeats_tried() -> str:
    """All settings that were tried for them, on held-out records of the training patients."""
    lines = []
    for name, tried in _record("ecg.json")["validation"].items():
        chosen = tried[0]["settings"]
        for i, seen in enumerate(tried):
            changed = {key: value for key, value in seen["settings"].items() if chosen.get(key) != value}
            words = ", ".join(f"`{key}={value!r}`" for key, value in (changed if i else chosen).items())
            lines.append([name, words if i else f"**chosen**: {words}", *(f"{seen[key]:.1f}" for key in BEAT_SCORES)])
    return _table(["method", "settings, or what is other than in the chosen one", *BEAT_COLUMNS], lines)


def keywords() -> str:
    """Keyword networks on the test sets, and what was published."""
    found = {name: seen for name, seen in _record("keywords.json").items() if "runs" in seen}
    lines = [_keywords(name, seen) for name, seen in found.items()]
    lines += [_as_published(other) for other in published.KEYWORDS]
    columns = ["network", "features", "v1 test, %", "every seed", "MLPerf's clips, %", "every seed", "bytes"]
    table = _table([*columns, "RAM", "instructions per frame, Cortex-M4", "seconds of training"], lines)
    reached = [f"{name} reaches {seen['mlperf']:.1f} %" for name, seen in found.items() if "mlperf" in seen]
    told = f"MLPerf Tiny's own quality target on these clips is {MLPERF} %: {', '.join(reached)}."
    return "\n".join([table, "", told])


def _as_published(other: published.Published) -> list[object]:
    name = f"{other.network} ({other.source})" if other.source else other.network
    return [name, other.features, "–" if other.score is None else other.score, *"–––", other.size, *"–––"]


def _keywords(name: str, seen: dict[str, Any]) -> list[str]:
    runs = seen["runs"]
    title = f"{name}: {seen['settings']['layers']} layers of {seen['settings']['width']}, {seen['classes']} classes"
    figures = []
    for key in ("accuracy", "mlperf"):
        seeds = [f"{run[key]:.1f}" for run in runs if key in run]
        figures += [f"{seen[key]:.1f}", ", ".join(seeds)] if seeds else ["–", "–"]
    most = [f"{max(run[key] for run in runs):,}" for key in ("bytes", "ram_bytes", "instructions_per_sample")]
    return [title, "10 × 49", *figures, *most, f"{seen['seconds']:.0f}"]


def keywords_tried() -> str:
    """What was tried on the validation split."""
    lines = []
    for name, seen in _record("keywords.json").items():
        for entry in seen.get("tried", []):
            told = ", ".join(f"{key} {value}" for key, value in entry["settings"].items())
            figures = [f"{entry['validation']:.1f}", f"{entry['validation_silence']:.0f}", f"{entry['bytes']:,}"]
            lines.append([name, told, *figures, f"{entry['seconds']:.0f}"])
    return _table(["for", "settings", "validation, %", "recall of silence, %", "bytes", "seconds"], lines)


def keywords_stream() -> str:
    """Words one after the other through the C with its smoother."""
    lines = []
    for name, seen in _record("keywords.json")["stream"].items():
        for split, found in (("validation", _chosen(seen)), ("test", seen["test"])):
            window, need, _ = found["smoother"]
            counts = [f"{found[key]:,}" for key in ("commands", "other_clips")]
            rates = [f"{found['missed_percent']:.1f}", f"{found['false_alarms']:,}"]
            rates += [f"{found['false_alarms_per_hour']:.0f}", str(found["differences"])]
            lines.append([name, split, f"{need} of {window}", f"{found['hours']:.2f}", *counts, *rates])
    columns = ["network", "split", "answers that agree", "hours", "commands", "other clips", "missed, %"]
    return _table([*columns, "false alarms", "per hour", "not as in Python"], lines)


def _chosen(seen: dict[str, Any]) -> dict[str, Any]:
    return next(found for found in seen["validation"] if found["smoother"] == seen["chosen"])


TABLES: dict[str, Callable[[], str]] = {
    "demo": demo,
    "host": host,
    "devices": devices,
    "avr": avr,
    "structured": structured,
    "training": training,
    "cells": cells,
    "points": overview.table,
    "zoo": programs,
    "real": real,
    "uno": uno,
    "stacks": stacks,
    "har-tried": har_tried,
    "har-stream": har_stream,
    "heartbeats": heartbeats,
    "heartbeats-tried": heartbeats_tried,
    "keywords": keywords,
    "keywords-tried": keywords_tried,
    "keywords-stream": keywords_stream,
}


def _record(name: str) -> Any:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def _on_device(seen: dict[str, Any]) -> list[str]:
    counts = [f"{seen[f'instructions_per_{what}']:,}" for what in ("step", "readout")]
    memory = [f"{seen[f'{what}_bytes']:,}" for what in ("flash", "ram", "stack")]
    return [*counts, *memory, "yes" if seen["exact"] else "no"]


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _figure(value: float | str | None) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.4g}"


def _table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


if __name__ == "__main__":
    main()
