"""Settings of a fit: what is refused, names, and targets that this machine cannot run."""

import re
from dataclasses import replace

import pytest
from fit_waves import asked

from qornn.errors import SettingsError
from qornn.fit import pipeline
from qornn.verify import VerifyError


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metric": "balance"}, "unknown metric 'balance'"),
        ({"bits": (12,)}, r"bits must be in 2\.\.8, got 12"),
        ({"bits": ()}, "bits is empty"),
        ({"targets": ("cortex-m5",)}, "Did you mean 'cortex-m55'"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"name": "2fast"}, "C identifier"),
        ({"estimator": {"map": "bjork"}}, "Did you mean 'bjorck'"),
        ({"estimator": {"n_hidden": 0}}, "n_hidden must be"),
        ({"estimator": {"width": 8}}, "width=8 is only for map='rotations'"),
        ({"estimator": {"map": "rotations", "pairs": 8}}, "pairs=8 and n_hidden=12"),
        ({"estimator": {"max_epochs": 0}}, "max_epochs must be"),
        ({"estimator": {"activation_bits": 20}}, r"activation_bits must be in 4\.\.16, got 20"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_read(changes, words, tmp_path):
    with pytest.raises(SettingsError, match=words):
        asked(tmp_path / "none.npz", tmp_path / "out", **changes)


@pytest.mark.parametrize(
    ("stem", "name"), [("ECG5000", "ecg5000"), ("my  waves-2", "my_waves_2"), ("int", "model"), ("9", "model")]
)
def test_the_c_is_named_after_the_data_where_c_allows_it(stem, name, tmp_path):
    assert asked(tmp_path / f"{stem}.npz", tmp_path).c_name == name


def test_what_cannot_be_verified_here_is_skipped_by_name_unless_it_was_asked_for(tmp_path, monkeypatch):
    def refuse(out, target):
        raise VerifyError("no C compiler found")

    monkeypatch.setattr(pipeline, "verify", refuse)
    monkeypatch.setattr(pipeline, "find_spec", lambda tool: None if tool == "ziglang" else tool)
    plain = asked(tmp_path / "d.npz", tmp_path, targets=None)
    checked, skipped = pipeline._verify(plain, lambda text: None)
    assert not checked
    assert re.match(r"cortex-m4 was not emulated: ziglang not installed; pip install 'qornn\[mcu\]'", skipped[0])
    assert skipped[1] == "not verified on host: no C compiler found"
    checked, skipped = pipeline._verify(replace(plain, targets=("rv32",)), lambda text: None)
    assert checked == [{"target": "rv32", "exact": None, "error": "no C compiler found"}]
    assert not skipped
