"""Folders of .npy files."""

import os

import numpy as np
import pytest

from qornn.errors import DataError, SettingsError
from qornn.fit.readers import read


def write(folder, files):
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, str):
            path.write_text(value, encoding="utf-8")
        else:
            np.save(path, value)
    return folder


def test_arrays_by_name(tmp_path):
    data = read(write(tmp_path, {"x_train.npy": np.ones((3, 4)), "y_train.npy": np.array([1, 2, 1])}))
    assert data.train.x.x.shape == (3, 4, 1)
    with pytest.raises(DataError, match="holds x; needed are"):
        read(write(tmp_path / "half", {"x.npy": np.ones((3, 4))}))


def test_a_folder_a_class_with_sequences_of_any_length(tmp_path):
    files = {"walk/a.npy": np.ones((3, 2)), "walk/b.npy": np.ones((5, 2)), "sit/a.npy": np.zeros((4, 2))}
    data = read(write(tmp_path, files | {"notes/readme.txt": "no class"}))
    assert data.train.y.tolist() == ["sit", "walk", "walk"]
    assert [len(part) for part in data.train.for_estimator()] == [4, 3, 5]


def test_a_folder_s_name_is_a_class_even_when_it_is_a_number(tmp_path):
    assert read(write(tmp_path, {"0.5/a.npy": np.ones(3), "1.5/a.npy": np.ones(3)})).train.y.tolist() == ["0.5", "1.5"]


def test_train_and_test_folders(tmp_path):
    files = {"train/a/1.npy": np.ones(3), "train/b/1.npy": np.zeros(3), "test/b/1.npy": np.zeros(4)}
    data = read(write(tmp_path, files))
    assert data.train.y.tolist() == ["a", "b"]
    assert data.test.y.tolist() == ["b"]


def test_a_table_of_labels(tmp_path):
    files = {"p.npy": np.ones(3), "q.npy": np.zeros(4), "labels.csv": "file,label\nq.npy,0.25\np,1.5\n"}
    data = read(write(tmp_path, files))
    assert data.train.y.tolist() == [0.25, 1.5]
    assert [len(part) for part in data.train.for_estimator()] == [4, 3]
    assert not data.notes


def test_files_that_no_line_names_are_told(tmp_path):
    files = {"p.npy": np.ones(3), "q.npy": np.zeros(4), "r.npy": np.ones(2), "labels.csv": "file,label\np,0.5\n"}
    assert read(write(tmp_path, files)).notes == ("2 files have no line in labels.csv and are left out, q.npy first",)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds no .npy or .wav files; layouts are"),
        ({"p.npy": np.ones(3)}, "p.npy, whose label is unknown"),
        ({"a/p.npy": np.array([1, np.nan]), "b/p.npy": np.ones(2)}, "nan, a missing value, at row 1, column 0"),
        ({"a/p.npy": np.ones((3, 2)), "b/p.npy": np.ones((3, 1))}, "1 channels, p.npy has 2"),
        ({"a/p.npy": np.ones((3, 2, 2))}, r"\(T,\) or \(T, C\)"),
        ({"a/p.npy": "not an array"}, "write it with numpy.save"),
        ({"a/p.npy": np.array([{}], object)}, "allow_pickle=False"),
        ({"p.npy": np.ones(3), "labels.csv": "p,1\n"}, "begin with the line file,label"),
        ({"p.npy": np.ones(3), "labels.csv": "file,label\np\n"}, "'p' as line 2"),
        ({"p.npy": np.ones(3), "labels.csv": "file,label\nq,1\n"}, "names q in line 2, which is not in"),
        ({"p.npy": np.ones(3), "labels.csv": "file,label\n"}, "names no file"),
        ({"p.npy": np.ones(3), "labels.csv": "file,label\np,1\np.npy,2\n"}, "names p.npy in line 3 again"),
    ],
)
def test_bad_folders_are_refused_in_words(files, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read(write(tmp_path, files))


def test_columns_are_of_tables_only(tmp_path):
    with pytest.raises(SettingsError, match="--label names a column of a CSV file"):
        read(write(tmp_path, {"a/p.npy": np.ones(3)}), label="y")


@pytest.mark.parametrize(
    "name", ["../secret", "../secret.npy", "sub/../../secret", "linked", "ABSOLUTE", "away/secret"]
)
def test_a_table_of_labels_reads_nothing_outside_its_folder(name, tmp_path):
    folder = write(tmp_path / "data", {"p.npy": np.ones(3), "sub/q.npy": np.ones(3)})
    write(tmp_path, {"secret.npy": np.zeros(3)})
    (folder / "linked.npy").symlink_to(tmp_path / "secret.npy")
    (folder / "away").symlink_to(tmp_path)
    name = name.replace("ABSOLUTE", str(tmp_path / "secret.npy"))
    write(folder, {"labels.csv": f"file,label\np,0\n\n{name},1\n"})
    with pytest.raises(DataError, match=r"in line 4, which is outside .*data.*; copy it there"):
        read(folder)


def test_a_table_of_labels_may_name_what_lies_below(tmp_path):
    files = {"sub/p.npy": np.ones(3), "sub/q.npy": np.zeros(4), "labels.csv": "file,label\nsub/q,0\nsub/p.npy,1\n"}
    write(tmp_path / "data", files)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert [len(part) for part in read(tmp_path / "link").train.for_estimator()] == [4, 3]


@pytest.mark.parametrize("layout", [("x.npy", "y.npy"), ("a/p.npy", "b/p.npy"), ("train/a/p.npy", "train/b/p.npy")])
@pytest.mark.parametrize("linked", ["file", "folder"])
def test_links_lead_nowhere_outside_the_folder(layout, linked, tmp_path):
    array = np.ones((2, 3)) if "x.npy" in layout else np.ones(3)
    write(tmp_path / "away", {layout[1].rpartition("/")[2]: np.ones(2)})
    folder = write(tmp_path / "data", {layout[0]: array})
    inner = folder / layout[1]
    if linked == "folder" and "/" in layout[1]:
        inner.parent.symlink_to(tmp_path / "away")
    else:
        inner.parent.mkdir(exist_ok=True)
        inner.symlink_to(tmp_path / "away" / inner.name)
    with pytest.raises(DataError, match=r"a link to a file outside .*data; copy the file there"):
        read(folder)


def test_an_open_quote_in_the_table_of_labels_is_refused(tmp_path):
    files = {"p.npy": np.ones(3), "q.npy": np.ones(3), "labels.csv": 'file,label\np,"1\nq,"2\n'}
    with pytest.raises(DataError, match=r"labels\.csv has a quote in line 2 that"):
        read(write(tmp_path, files))


@pytest.mark.parametrize(
    ("stray", "known"),
    [("length_train.npy", "lengths_train"), ("X_test.npy", "x_test"), ("Lengths_Train.npy", "lengths_train")],
)
def test_files_that_are_nearly_named_are_refused(stray, known, tmp_path):
    files = {"x_train.npy": np.ones((3, 4)), "y_train.npy": np.array([1, 2, 1]), stray: np.array([4, 4, 2])}
    with pytest.raises(DataError, match=f"{stray.removesuffix('.npy')}.* did you mean {known}"):
        read(write(tmp_path, files))


def test_capital_names_are_told_apart_from_sequences(tmp_path):
    with pytest.raises(DataError, match=r"holds X\.npy; did you mean x\.npy"):
        read(write(tmp_path, {"X.npy": np.ones((3, 4)), "Y.npy": np.array([1, 2, 1])}))


@pytest.mark.parametrize("name", ["d.npz", "d.csv", "d", "d.npy"])
def test_a_pipe_is_refused_and_not_waited_for(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match="neither a file nor a folder"):
        read(tmp_path / name)
    files = write(tmp_path / "more", {"x.npz": "", "q.csv": "1,2,a\n3,4,b\n"})
    with pytest.raises(DataError, match="neither a file nor a folder"):
        read(files / "q.csv", test=tmp_path / name)


@pytest.mark.parametrize("named", [True, False])
def test_missing_samples_pass_where_they_are_held(named, tmp_path):
    x = np.array([[1, np.nan, 3], [4, 5, 6]])
    files = {"x.npy": x, "y.npy": np.array([0, 1])} if named else {"a/1.npy": x[0], "b/1.npy": x[1]}
    folder = write(tmp_path, files)
    np.testing.assert_array_equal(read(folder, hold=True).train.x.x[:, :, 0], x)
    with pytest.raises(DataError, match=r"a missing value.*--missing hold"):
        read(folder)


def test_labels_may_have_groups_beside_them(tmp_path):
    files = {"p.npy": np.ones(3), "q.npy": np.zeros(4), "labels.csv": "file,label,group\nq,0.25,anna\np,1.5,bo\n"}
    train = read(write(tmp_path, files)).train
    assert (train.y.tolist(), train.groups.tolist()) == ([0.25, 1.5], ["anna", "bo"])


def test_a_line_without_its_group_is_refused(tmp_path):
    files = {"p.npy": np.ones(3), "labels.csv": "file,label,group\np,1\n"}
    with pytest.raises(DataError, match="'p,1' as line 2; each is file,label,group"):
        read(write(tmp_path, files))
