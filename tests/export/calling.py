"""Tools that are called with an exported folder."""

import subprocess


def called(*words, **options):
    """What a tool says; it must succeed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, encoding="utf-8", **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
