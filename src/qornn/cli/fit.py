"""qornn fit DATA -o OUT: the user's own data, from a file to verified C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qornn._io.text import harmless
from qornn.cli.options import Device, Json, given_command
from qornn.cli.output import print_files, print_json, print_table
from qornn.errors import SettingsError


def run(
    data: Annotated[
        Path,
        typer.Argument(
            help="An .npz, .csv, .tsv, .ts, .arff or .parquet file, or a folder of .npy files, or of .wav for sound."
        ),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The folder to write: new, empty, or from the same command.")
    ],
    bits: Annotated[
        str, typer.Option("--bits", help="Weight bits, 2 to 8. Several, as in 2,3,4,8, are compared.")
    ] = "4",
    task: Annotated[
        str, typer.Option(help="classify, regress, or auto. auto: regress if some label is not a whole number.")
    ] = "auto",
    test: Annotated[
        Path | None,
        typer.Option("--test", help="Test data, if DATA has no test set. Default: NAME_TEST.ts beside NAME_TRAIN.ts."),
    ] = None,
    test_fraction: Annotated[
        float | None, typer.Option(help="Share of the data held out as test set, if there is none.", show_default="0.2")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="CSV: the label column, by name or by number from 1. Default: 'label', else the last column."
        ),
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="CSV, long: the column of sequence ids. Default: id.")] = None,
    time: Annotated[str | None, typer.Option("--time", help="CSV, long: the column of times. Default: time.")] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="CSV: the column that names the group of each sequence, such as a person or a recording. Only whole "
            "groups are held out. Default: no groups."
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            help="The metric for classes, which also chooses the bits: accuracy, or balanced (the mean recall of all "
            "classes). Default: accuracy.",
            show_default=False,
        ),
    ] = "accuracy",
    map: Annotated[
        str | None,
        typer.Option(
            help="rotations: a stack of rotations. Any other map: a single orthogonal layer. Its W is stored (bjorck, "
            "projunn, penalty, free) or not stored (hadamard, hadamard-block, cycle, delay).",
            show_default="rotations",
        ),
    ] = None,
    layers: Annotated[int | None, typer.Option(help="rotations: number of layers.", show_default="2")] = None,
    width: Annotated[int | None, typer.Option(help="rotations: outputs between the layers.", show_default="24")] = None,
    pairs: Annotated[
        int | None, typer.Option(help="rotations: pairs of units in each layer.", show_default="as --width")
    ] = None,
    skip: Annotated[
        bool | None, typer.Option("--skip/--no-skip", help="rotations: skip connections. Default: --skip.")
    ] = None,
    differences: Annotated[
        bool | None,
        typer.Option(
            "--differences/--no-differences",
            help="rotations: the network also reads how much each channel changed since the sample before. "
            "Default: --no-differences.",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="Missing values: refuse or hold. hold (rotations only) uses the last value, on the device too.",
            show_default="refuse",
        ),
    ] = None,
    n_hidden: Annotated[
        int | None,
        typer.Option(help="Units of a single layer. rotations: sets both --width and --pairs.", show_default="64"),
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Samples that the network reads per step. Default: chosen on held-out data.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Maximum number of epochs. Default: the estimator's.")] = None,
    activation_bits: Annotated[
        int | None,
        typer.Option("--activation-bits", help="State bits, 4 to 16.", show_default="12; rotations: 8, in training"),
    ] = None,
    class_weight: Annotated[
        str | None, typer.Option(help="balanced: rare classes weigh as much as common ones. Default: none.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights, data order and held-out parts.")] = 0,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Where to verify the C: host, cortex-m0, cortex-m4, cortex-m55, rv32 or atmega328p. Repeatable. "
            "Default: host, plus cortex-m4 if its tools are installed."
        ),
    ] = None,
    web: Annotated[
        bool,
        typer.Option(
            "--web/--no-web", help="Also write a web page that runs the network. Needs the zig compiler (qornn[mcu])."
        ),
    ] = True,
    name: Annotated[
        str | None, typer.Option(help="Prefix of every C symbol. Default: made from the name of DATA.")
    ] = None,
    device: Device = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar and no messages on standard error.")] = False,
    json: Json = False,
) -> None:
    """Train on your own sequences, measure on held-out ones, and write integers, verified C, a web page and a report.

    .npz: x_train, y_train and optionally x_test, y_test; or x, y. x is (N, T) or (N, T, channels). If lengths differ, x
    is padded and lengths_train, lengths_test or lengths (N,) hold the true ones. groups_train, groups_test or groups
    (N,) name the group of each sequence, such as a person.

    .csv, one series per row: one column of labels, all others are samples. Empty cells at a row's end make a shorter
    series. .csv, long: one sample per row, a header with id, time and label; the other columns are channels.

    Folder of .npy: x.npy, y.npy (names as in .npz); CLASS/*.npy, one sequence (T,) or (T, channels) per file, also
    within train/ and test/; or *.npy with labels.csv, whose lines are file,label or file,label,group.

    .ts and .arff of the UCR and UEA archives: one series per row, of one or several dimensions; classes, or values to
    predict. For NAME_TRAIN.ts (.arff, .tsv, .txt), NAME_TEST.ts beside it is the test set, unless --test or
    --test-fraction is given. .parquet: a table like .csv, read by pandas and pyarrow if they are installed.

    Folder of .wav: CLASS/*.wav, also within train/ and test/; 16-bit PCM, one channel, 16 kHz. The network reads 10
    features (MFCC) per 20 ms.

    Without a test set, --test-fraction of each class is held out, drawn with the seed. With groups, whole groups are
    held out. Several bit widths are compared on a further fifth of the training data: the smallest within one point of
    the best is chosen. The test set is not used for this choice.
    Missing values (NaN, or empty cells inside a series) are an error that names row and column; with --missing hold the
    last value of the channel is used instead. A constant channel is kept. Test labels that do not occur in training
    count as wrong. A rerun of the same command reuses finished widths in OUT.

    OUT holds report.html, c/, web/, model.qornn, result.json and each width as k4.qornn. The last lines name them.

    Example: qornn fit ecg.npz -o ecg --bits 2,3,4,8
    """
    from qornn.fit.pipeline import fit
    from qornn.fit.settings import Fit

    asked = {
        "layers": layers,
        "width": width,
        "pairs": pairs,
        "skip": skip,
        "differences": differences,
        "missing": missing,
        "n_hidden": n_hidden,
        "window": window,
        "max_epochs": epochs,
        "map": map,
        "activation_bits": activation_bits,
        "class_weight": _class_weight(class_weight),
    }
    settings = Fit(
        data=data,
        out=out,
        bits=_bits(bits),
        task=task,
        test=test,
        label=label,
        id=id,
        time=time,
        group=group,
        metric=metric,
        test_fraction=test_fraction,
        seed=seed,
        name=name,
        targets=tuple(target) if target else None,
        web=web,
        estimator={key: value for key, value in asked.items() if value is not None} | {"device": device},
        quiet=quiet,
        command=given_command(),
    )
    try:
        figures = fit(settings)
    except KeyboardInterrupt:
        kept = ", ".join(sorted(path.name for path in out.glob("k*.qornn")))
        told = f"kept in {out}: {kept}; the same command continues from there" if kept else "no width was finished"
        typer.echo(f"stopped; {told}", err=True)
        raise typer.Exit(130) from None
    _show(figures, json)
    wrong = [check for check in figures["verification"] if check["exact"] is False or "error" in check]
    for check in wrong:
        reason = check.get("error") or check["difference"]
        typer.echo(f"error: the C in {out / 'c'} is not verified on {check['target']}: {reason}", err=True)
    if wrong:
        raise typer.Exit(1)


def _bits(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise SettingsError(f"--bits takes whole numbers in 2..8, as in --bits 4 or --bits 2,3,4,8; got {text!r}")
    return tuple(map(int, words))


def _class_weight(text: str | None) -> str | None:
    if text not in (None, "balanced", "none"):
        raise SettingsError(f"--class-weight is balanced or none, got {text!r}")
    return None if text == "none" else text


def _show(figures: dict[str, Any], json: bool) -> None:
    if json:
        print_json(figures)
        return
    if len(figures["widths"]) > 1:
        columns = ["bits", "value", "choice", "float", "true_bytes", "epochs"]
        rows = [[width[column] for column in columns] for width in figures["widths"]]
        print_table(f"{figures['metric']} against bits; {figures['bits']} chosen", columns, rows)
        print()
    flat = {k: v for key, value in figures.items() for k, v in _flat(key, value).items()}
    shown = {key: value for key, value in flat.items() if not isinstance(value, list) and value is not None}
    checks = {f"C on {check['target']}": _verdict(check) for check in figures["verification"]}
    print_table(figures["run"], ["", ""], (shown | checks).items())
    for note in figures["notes"]:
        print(f"note: {harmless(note)}")
    print(f"\n{_network(figures)}")
    out = Path(figures["run"])
    page = {"web page": out / figures["web"]} if figures["web"] else {}
    print_files({"network": out / "model.qornn", "C": out / "c", **page, "report": out / "report.html"})
    read = harmless(str(out / "c" / "README.md"))
    print(f"\nNext: open the report in a browser; {read} says how to build the C")


def _network(figures: dict[str, Any]) -> str:
    """The network in one line."""
    value = f"{figures['value']:.4g}" + (" %" if figures["task"] == "classify" else "")
    return (
        f"{figures['metric']} {value} on {figures['test']} held-out sequences, {figures['bits']}-bit weights, "
        f"{figures['true_bytes']:,} bytes"
    )


def _flat(key: str, value: Any) -> dict[str, Any]:
    """Nested tables as separate lines."""
    return {f"{key}, {k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}


def _verdict(check: dict[str, Any]) -> str:
    if check["exact"] is None:
        return "not run"
    return f"exact in {check['steps']} steps" if check["exact"] else "differs"
