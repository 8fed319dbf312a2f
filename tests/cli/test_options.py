"""What several commands share."""

import sys

import pytest

from qornn.cli.options import given_command


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["export", "/data/me/a.qornn", "-o", "../out/pm5_c/"], "qornn export a.qornn -o pm5_c"),
        (["-o/data/me/out", "--out=/data/me/k=v/out"], "qornn -oout --out=out"),
        (["C:\\data\\me\\out", "/data/me/my data/b c.csv"], "qornn out 'b c.csv'"),
        (
            ["zoo:digits-k4", "--name", "pm5", "--set", "train.lr=1", ".", ""],
            "qornn zoo:digits-k4 --name pm5 --set train.lr=1 . ''",
        ),
    ],
)
def test_a_command_that_files_name_tells_no_folders(monkeypatch, typed, said):
    monkeypatch.setattr(sys, "argv", ["/data/me/.venv/bin/qornn", *typed])
    assert given_command() == said
