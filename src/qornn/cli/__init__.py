"""The command line: one file a subcommand; torch is imported by the commands that need it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from qornn import __version__
from qornn.cli import bench, export, fit, lower, report, reproduce, resume, show, size, train, verify
from qornn.cli import eval as eval_
from qornn.cli import list as list_
from qornn.errors import QornnError

app = typer.Typer(
    name="qornn",
    help="Recurrent networks whose recurrent matrix is orthogonal and stored on 2 to 8 bits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_.run,
    "show": show.run,
    "train": train.run,
    "resume": resume.run,
    "eval": eval_.run,
    "lower": lower.run,
    "size": size.run,
    "export": export.run,
    "verify": verify.run,
    "fit": fit.run,
    "bench": bench.run,
    "reproduce": reproduce.run,
    "report": report.run,
}
for _name, _function in _COMMANDS.items():
    app.command(_name)(_function)


def _version(asked: bool) -> None:
    if asked:
        print(f"qornn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; an error of ours is one paragraph on standard error, not a traceback."""
    try:
        app()
    except QornnError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
