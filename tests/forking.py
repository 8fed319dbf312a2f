"""The command line in a process of its own that is forked, without the seconds that a new Python takes to import torch.

The child has the streams, variables, folder, arguments and warnings of a new process. It keeps the modules of the
tests, so whatever is about starting Python itself belongs into a real process.
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

HIDDEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # as Python starts


class Forked:
    """`qornn WORDS...`, begun; `before` is called in the child first. Used like a subprocess.Popen."""

    def __init__(self, *words, env=None, cwd=None, before=None):
        self.args, self.returncode = ["qornn", *map(str, words)], None
        self._streams = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        with warnings.catch_warnings(action="ignore"):  # of threads beside the fork: the workers' own, which wait
            self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                code = self._child(env, cwd, before)
            finally:  # never back into the tests
                os._exit(code)

    def poll(self):
        """The exit code, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._end(status)
        return self.returncode

    def wait(self, timeout=300):
        """The exit code; a child that is late is killed."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                self.kill()
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.002)
        return self.returncode

    def communicate(self, timeout=300):
        """What it said on both streams, when it has ended."""
        self.wait(timeout)
        return self._said

    def send_signal(self, number):
        """Nothing to a child that has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        """At once, and waited for."""
        self.send_signal(signal.SIGKILL)
        if self.returncode is None:
            self._end(os.waitpid(self.pid, 0)[1])

    def _end(self, status):
        self.returncode = os.waitstatus_to_exitcode(status)
        self._said = tuple(_text(stream) for stream in self._streams)

    def _child(self, env, cwd, before):
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)
        for number, stream in enumerate(self._streams, 1):
            os.dup2(stream.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, closefd=False) for n, mode in enumerate("rww"))
        os.environ.update(env or {})
        os.chdir(cwd or os.getcwd())
        sys.argv = self.args
        logging.getLogger().handlers.clear()
        warnings.resetwarnings()
        for category in HIDDEN:
            warnings.simplefilter("ignore", category)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        return _exit_code(before)


def run(*words, **options):
    """What `qornn WORDS...` said and how it ended."""
    child = Forked(*words, **options)
    out, err = child.communicate()
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def _exit_code(before):
    from qornn.cli import main

    code = 0
    try:
        if before is not None:
            before()
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _text(stream):
    stream.seek(0)
    text = stream.read().decode(errors="replace")
    stream.close()
    return text
