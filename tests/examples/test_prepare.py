"""Downloads in their documented formats, made here, become the files that the examples read."""

import io
import subprocess
import sys
import zipfile

import data
import numpy as np
import prepare
import pytest

from qornn.errors import DataError

# Experiment, user, activity, first and last sample: 300, 128, 127 and 200 of them.
SEGMENTS = [(1, 1, 5, 10, 309), (2, 2, 1, 0, 127), (1, 1, 7, 310, 436), (2, 2, 3, 130, 329)]
UNITS = {1: 500, 2: 330}  # samples of an experiment


def units(experiment):
    """(T, 6) int16, both ends of it included."""
    x = np.random.default_rng(experiment).integers(-(2**15), 2**15, (UNITS[experiment], 6)).astype(np.int16)
    x[0] = -(2**15)
    return x


def text(x, fmt="%.16g", **options):
    out = io.StringIO()
    np.savetxt(out, x, fmt=fmt, **options)
    return out.getvalue()


def hapt_files():
    files = {"README.txt": "not a signal", "activity_labels.txt": "1 WALKING"}
    for e in UNITS:
        values = (units(e) * prepare.SCALE).astype(np.float32)  # as a phone's float32, written out
        files[f"RawData/acc_exp{e:02d}_user{e:02d}.txt"] = text(values[:, :3])
        files[f"RawData/gyro_exp{e:02d}_user{e:02d}.txt"] = text(values[:, 3:])
    files["RawData/labels.txt"] = "".join(f"{' '.join(map(str, row))} \n" for row in SEGMENTS)
    return files


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def zipped(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def made(download, tmp_path, file="har/hapt.npz"):
    prepare.prepare(download, tmp_path / "data")
    with np.load(tmp_path / "data" / file) as arrays:
        return {name: arrays[name] for name in arrays.files}


def test_hapt_comes_back_in_sensor_units_with_its_windows(tmp_path):
    a = made(write(tmp_path / "raw", hapt_files()), tmp_path)
    x = np.concatenate([units(1), units(2)])
    assert a["x"].dtype == np.int16
    assert np.array_equal(a["x"], x)
    assert a["rec_start"].tolist() == [0, 500, 830]
    assert a["rec_user"].tolist() == [1, 2]
    # 300 samples hold three windows of 128, 64 apart; 128 hold one, 127 none, 200 two.
    assert a["win_start"].tolist() == [10, 74, 138, 500, 630, 694]
    assert a["win_label"].tolist() == [5, 5, 5, 1, 3, 3]
    assert a["win_test"].tolist() == [False, False, False, True, True, True]  # user 2 is a test user
    for name, _, activity, first, last in SEGMENTS:
        at = a["rec_start"][name - 1]
        assert (a["label"][at + first : at + last + 1] == activity).all()
    assert (a["label"] == 0).sum() == len(x) - (300 + 128 + 127 + 200)


def test_the_loader_takes_the_basic_activities_of_what_was_prepared(tmp_path):
    prepare.prepare(write(tmp_path / "raw", hapt_files()), tmp_path / "data")
    found = data.har(tmp_path / "data")
    assert found.x_train.shape == (3, 128, 6)
    assert np.array_equal(found.x_train[1], units(1)[74 : 74 + 128])
    assert found.y_test.tolist() == [1, 3, 3]
    assert found.groups.tolist() == [1, 1, 1]
    assert found.labels[0] == "walking"
    (recording,) = data.har_recordings(tmp_path / "data")
    assert recording.user == 2
    assert np.array_equal(recording.x, units(2))


def test_a_zip_and_a_zip_in_a_zip_do_as_well(tmp_path):
    plain = made(write(tmp_path / "raw", hapt_files()), tmp_path)
    inner = zipped(tmp_path / "HAPT.zip", hapt_files())
    outer = zipped(tmp_path / "outer.zip", {"HAPT Data Set.zip": inner.read_bytes()})
    for download in (inner, outer):
        assert all(np.array_equal(plain[name], a) for name, a in made(download, tmp_path).items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"RawData/labels.txt": "1 1 5 10 500\n"}, "from 10 to 500 in experiment 1, of which there are 500 samples"),
        ({"RawData/labels.txt": "3 1 5 10 20\n"}, "experiment 3, of which there are 0"),
        ({"RawData/labels.txt": "1 1 5 10\n"}, "labels.txt has 4 columns"),
        ({"RawData/gyro_exp02_user02.txt": None}, "no gyro_exp02_user02.txt"),
        ({"RawData/gyro_exp02_user02.txt": "0 0 0\n"}, r"are \(330, 3\) and \(1, 3\)"),
        ({"RawData/acc_exp01_user01.txt": text(np.full((500, 3), 0.1234))}, "not the raw data of HAPT"),
    ],
)
def test_what_is_wrong_with_a_download_is_said(tmp_path, change, words):
    files = {name: content for name, content in (hapt_files() | change).items() if content is not None}
    with pytest.raises(DataError, match=words):
        prepare.prepare(write(tmp_path / "raw", files), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def series():
    rng = np.random.default_rng(0)
    return {
        part: (rng.choice([-1, 1], 4), rng.standard_normal((4, 9)).astype(np.float32)) for part in ("TRAIN", "TEST")
    }


def ucr_text(y, x, ending):
    if ending == "ts":
        rows = "".join(f"{','.join(map(repr, row))}:{label}\n" for label, row in zip(y, x.tolist(), strict=True))
        return f"#a comment\n@problemName FordA\n@classLabel true -1 1\n@data\n{rows}"
    return text(np.column_stack([y, x]), fmt="%.9e", delimiter="\t" if ending == "tsv" else "  ")


@pytest.mark.parametrize("ending", ["tsv", "txt", "ts"])
def test_series_of_the_ucr_archive_in_its_three_formats(tmp_path, ending):
    files = {f"FordA/FordA_{part}.{ending}": ucr_text(y, x, ending) for part, (y, x) in series().items()}
    a = made(write(tmp_path / "raw", files), tmp_path, "ucr/FordA.npz")
    for part, (y, x) in series().items():
        assert np.array_equal(a[f"y_{part.lower()}"], y)
        assert np.array_equal(a[f"x_{part.lower()}"], x)
    assert data.forda(tmp_path / "data").x_train.shape == (4, 9, 1)


def test_a_ragged_table_is_refused(tmp_path):
    files = {"FordA_TRAIN.tsv": "1\t2\t3\n1\t2\n", "FordA_TEST.tsv": "1\t2\t3\n"}
    with pytest.raises(DataError, match=r"FordA_TRAIN.tsv is not a table with a label and equally long series"):
        prepare.prepare(write(tmp_path / "raw", files), tmp_path / "data")


def test_the_command_says_what_it_wrote_or_where_the_downloads_are(tmp_path):
    def call(download):
        words = [sys.executable, prepare.__file__, download, "--data-dir", tmp_path / "data"]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    done = call(zipped(tmp_path / "HAPT.zip", hapt_files()))
    assert done.stdout.split() == [str(tmp_path / "data" / "har" / "hapt.npz")]
    (tmp_path / "empty").mkdir()
    done = call(tmp_path / "empty")
    assert done.returncode == 1
    assert data.HAPT_URL in done.stderr


def test_a_missing_file_says_its_place_and_its_address(tmp_path):
    with pytest.raises(DataError) as error:
        data.ecg5000(tmp_path)
    for part in (str(tmp_path / "ucr" / "ECG5000.npz"), "aeon-toolkit/ECG5000.zip", "prepare.py"):
        assert part in str(error.value)


def test_a_damaged_file_is_not_read(tmp_path):
    (tmp_path / "ucr").mkdir()
    (tmp_path / "ucr" / "FordA.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DataError, match="cannot be read"):
        data.forda(tmp_path)


def test_human_activity_is_split_as_published(real_data):
    found = data.har(real_data("har/hapt.npz"))
    # UCI HAPT: 7767 + 3162 windows, of which those of six activities, 1226 1073 987 1293 1423 1413 to train on.
    assert (len(found.y_train), len(found.y_test)) == (7415, 2996)
    assert np.bincount(found.y_train)[1:].tolist() == [1226, 1073, 987, 1293, 1423, 1413]
    assert not set(found.groups) & set(prepare.TEST_USERS)
    assert found.x_train.dtype == np.int16
