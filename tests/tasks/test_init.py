import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

import qornn.tasks
from qornn.errors import SettingsError
from qornn.tasks import make_task


def test_unknown_task_suggests_the_nearest():
    with pytest.raises(SettingsError, match=r"unknown task 'mnist'; choose from adding, .*Did you mean 'smnist'"):
        make_task("mnist")


def test_unknown_setting_suggests_the_nearest():
    with pytest.raises(SettingsError, match=r"unknown copy setting 'TO'; choose from T0, .*Did you mean 'T0'"):
        make_task("copy", TO=100)


def test_settings_reach_the_task():
    assert make_task("copy", T0=7).T == 27


def test_docstring_example_runs():
    result = doctest.testmod(qornn.tasks)
    assert result.attempted == 1
    assert result.failed == 0


def test_import_is_light():
    heavy = "{'torch', 'sklearn', 'rich', 'scipy'}"
    code = f"import sys, qornn.tasks as t; t.make_task('ptb'); print(sorted({heavy} & set(sys.modules)))"
    environment = os.environ | {"PYTHONPATH": str(Path(qornn.tasks.__file__).parents[2])}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == "[]", run.stderr
