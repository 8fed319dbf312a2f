"""The command line: one file per subcommand; torch is imported by the commands that need it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from qornn import __version__
from qornn._io.text import harmless
from qornn.cli import bench, demo, export, fit, lower, report, reproduce, resume, show, size, streams, train, verify
from qornn.cli import eval as eval_
from qornn.cli import list as list_
from qornn.errors import QornnError, SettingsError

app = typer.Typer(
    name="qornn",
    help="Recurrent networks whose recurrent matrix is orthogonal and stored on 2 to 8 bits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.run,
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


def _check_working_directory() -> None:
    try:
        os.getcwd()
    except OSError as error:  # torch's libraries would end the process without a word
        raise SettingsError("the working directory was deleted; change to another one") from error


def main() -> None:
    """Run the command line. Errors of qornn and of the system are printed in one paragraph, without a traceback."""
    streams.take_any_text()
    try:
        _check_working_directory()
        with streams.flushed():
            app()
    except BrokenPipeError:  # as in `qornn list | head -1`
        sys.exit(1)
    except (QornnError, OSError) as error:
        words = streams.in_words(error) if isinstance(error, OSError) else error
        print(f"error: {harmless(str(words))}", file=sys.stderr)
        sys.exit(1)
    except MemoryError as error:
        said = str(error) or "this machine has no more"
        print(f"error: not enough memory ({said}); use a smaller batch, fewer units or shorter data", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
