"""What several commands share."""

import sys

import pytest

from qornn.cli.options import given_command


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["export", "/home/me/a.qornn", "-o", "../out/pm5_c/"], "qornn export a.qornn -o pm5_c"),
        (["-o/home/me/out", "--out=/home/me/k=v/out"], "qornn -oout --out=out"),
        (["C:\\Users\\me\\out", "/home/me/my data/b c.csv"], "qornn out 'b c.csv'"),
        (
            ["zoo:digits-k4", "--name", "pm5", "--set", "train.lr=1", ".", ""],
            "qornn zoo:digits-k4 --name pm5 --set train.lr=1 . ''",
        ),
    ],
)
def test_a_command_that_files_name_tells_no_folders(monkeypatch, typed, said):
    monkeypatch.setattr(sys, "argv", ["/home/me/.venv/bin/qornn", *typed])
    assert given_command() == said
