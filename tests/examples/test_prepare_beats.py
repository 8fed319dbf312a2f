"""The beats file from records written here as the MIT formats are documented: 212, and annotations."""

import struct

import beats
import numpy as np
import pytest
from prepare_beats import AFTER, BEFORE, DS1, DS2, main, marks

from qornn.errors import DataError

NOTES = [(30, 1), (400, 1), (500, 28), (700, 8), (3000, 5), (3300, 31), (3400, 6), (3700, 2), (3950, 1)]  # time, code
ZERO = 1024


def packed(two):
    """Two channels in format 212: 12 bits each in three bytes.  # (T, 2) -> bytes"""
    a, b = (two & 0xFFF).T
    return np.stack([a & 255, a >> 8 | (b >> 8) << 4, b & 255], axis=1).astype(np.uint8).tobytes()


def noted(notes):
    """An annotation file: a code and the time since the last one; longer times are skipped first."""
    out, last = b"", 0
    for time, code in notes:
        gap, last = time - last, time
        if gap > 1023:
            out += struct.pack("<HHH", 59 << 10, gap >> 16, gap & 0xFFFF)
            gap = 0
        out += struct.pack("<H", code << 10 | gap)
        if code == 28:  # a rhythm, with its name of an odd length, and a number
            out += struct.pack("<H", 63 << 10 | 3) + b"(N\0\0" + struct.pack("<H", 61 << 10 | 7)
    return out + b"\0\0"


def record(folder, number, signal, column):
    two = np.zeros((len(signal), 2), np.int64)
    two[:, column], two[:, 1 - column] = signal + ZERO, 7
    names = ["V1", "V1"]
    names[column] = "MLII"
    lines = [f"{number} 2 360 {len(signal)}", *(f"{number}.dat 212 200 11 {ZERO} 0 0 0 {name}" for name in names)]
    (folder / f"{number}.hea").write_text("\n".join([*lines, "# 69 M"]) + "\n")
    (folder / f"{number}.dat").write_bytes(packed(two))
    (folder / f"{number}.atr").write_bytes(noted(NOTES))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mitdb")
    rng = np.random.default_rng(0)
    signals = {number: rng.integers(-1024, 1024, 4000) for number in (*DS1, *DS2)}
    for number, signal in signals.items():
        record(folder, number, signal, column=number % 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["prepare_beats.py", str(folder), "--data-dir", str(folder)])
        main()
    return folder, signals


def test_beats_are_cut_out_of_their_lead(made):
    folder, signals = made
    data = beats.mitbih(folder)
    for number, x in ((DS1[0], data.x_train), (DS2[0], data.x_test)):  # the lead is column 1 and 0
        for row, time in enumerate((400, 700, 3000, 3400, 3700)):  # 30 and 3950 lack samples; 28 and 31 are no beats
            assert (x[row, :, 0] == signals[number][time - BEFORE : time + AFTER]).all()


def test_classes_and_intervals(made):
    with np.load(made[0] / beats.FILE) as a:
        assert a["y_train"][:5].tolist() == [0, 1, 2, 3, 0]
        assert a["symbol_train"][:5].tolist() == ["N", "A", "V", "F", "L"]
        assert a["rr_train"][:5].tolist() == [[370, 300], [300, 2300], [2300, 400], [400, 300], [300, 250]]
        assert a["record_train"][::5].tolist() == [*DS1]
        assert a["record_test"][::5].tolist() == [*DS2]


def test_an_interval_at_the_end_of_a_record_is_zero(tmp_path):
    from prepare_beats import beats as of

    record(tmp_path, 100, np.zeros(3800, int), 0)
    (tmp_path / "100.atr").write_bytes(noted([(200, 1), (500, 1)]))
    assert of(tmp_path, 100)["rr"].tolist() == [[0, 300], [300, 0]]


def test_a_file_cut_short_gives_what_it_has():
    assert marks(noted(NOTES)[:5])[0].tolist() == [30, 400]


def test_a_missing_record_is_named(tmp_path):
    from prepare_beats import part

    with pytest.raises(DataError, match=r"101\.hea"):
        part(tmp_path, DS1, "train")
