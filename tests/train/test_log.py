import json
import os

import pytest

from qornn.errors import WriteError
from qornn.train.log import Display, MetricsLog, draw_curve, read_metrics


def test_records_come_back_and_resuming_cuts_what_came_after(tmp_path):
    log = MetricsLog(tmp_path)
    log.write({"step": 1, "loss": 2.0})
    length = log.length
    log.write({"step": 2, "loss": 1.0})
    log.close()
    again = MetricsLog(tmp_path, length=length)
    again.write({"step": 2, "loss": 1.5})
    again.close()
    assert read_metrics(tmp_path / "metrics.jsonl") == [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5}]


def test_a_line_cut_by_a_kill_is_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps({"step": 1}) + '\n{"step": 2, "lo')
    assert read_metrics(path) == [{"step": 1}]
    assert read_metrics(tmp_path / "absent") == []


def test_metrics_behind_a_link_are_neither_cut_nor_written(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("years of work")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").symlink_to(mine)
    with pytest.raises(WriteError, match="link"):
        MetricsLog(tmp_path / "run")
    assert mine.read_text() == "years of work"


def test_tensorboard_is_written_beside_the_metrics(tmp_path):
    pytest.importorskip("tensorboard")
    log = MetricsLog(tmp_path)
    log.write({"step": 1, "loss": 2.0, "validation": None})
    log.close()
    assert any(p.stat().st_size for p in (tmp_path / "tensorboard").iterdir())


def test_nothing_is_written_without_a_folder():
    log = MetricsLog(None)
    log.write({"step": 1})
    assert log.length == 0


def test_a_pipe_gets_plain_lines_and_quiet_means_quiet(capsys):
    for quiet in (False, True):
        with Display(10, quiet=quiet) as display:
            display._spoke -= 11  # the last line was long ago
            display.step(5, 0.25)
    heard = capsys.readouterr()
    assert heard.out == ""
    assert heard.err.count("step 5/10  loss 0.25") == 1


@pytest.mark.slow
@pytest.mark.parametrize("records", [[], [{"step": 1, "loss": 2.0}], [{"step": 1, "loss": 2.0, "validation": 0.5}]])
def test_the_curve_is_drawn_from_whatever_there_is(tmp_path, records):
    log = MetricsLog(tmp_path)
    for record in records:
        log.write(record)
    log.close()
    draw_curve(tmp_path, metric="mse", baseline=0.1)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a$_$b", "$\\frac$", "x^_{", "n\nl", "語", "x" * 255, os.fsdecode(b"caf\xe9")])
def test_a_run_may_have_any_name_that_a_folder_can_have(tmp_path, name):
    folder = tmp_path / name
    log = MetricsLog(folder)
    log.write({"step": 1, "loss": 2.0})
    log.close()
    draw_curve(folder, metric="mse", baseline=0.1)
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_records_of_a_long_run_are_read_whatever_they_weigh(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for step in range(70):
            file.write(f'{{"step": {step}, {" " * (1 << 20)}"loss": 1.0}}\n')
    assert [record["step"] for record in read_metrics(path)] == list(range(70))
