"""Real kills at a chosen moment, without the seconds that a new Python takes to import torch."""

import os
import signal


def killed_at_rename(number, work):
    """Do the work in a forked process that gets SIGKILL at its rename of that number, from 1.

    False where it made fewer renames and ended well.
    """
    child = os.fork()
    if child == 0:
        try:
            _kill_at_rename(number)
            work()
            os._exit(0)
        finally:  # never back into the tests
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the work failed before it was killed"
    return False


def _kill_at_rename(number):
    real, left = os.replace, [number]

    def replace(*paths):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        real(*paths)

    os.replace = replace
