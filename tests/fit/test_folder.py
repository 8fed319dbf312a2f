"""Folders of .npy files."""

import numpy as np
import pytest

from qornn.errors import DataError, SettingsError
from qornn.fit.reading import read


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
        ({}, "holds no .npy files; layouts are"),
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
        ({"p.npy": np.ones(3), "labels.csv": "file,label\np,1\np.npy,2\n"}, "names p.npy in line 3 once more"),
    ],
)
def test_bad_folders_are_refused_in_words(files, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read(write(tmp_path, files))


def test_columns_are_of_tables_only(tmp_path):
    with pytest.raises(SettingsError, match="--label names a column of a CSV file"):
        read(write(tmp_path, {"a/p.npy": np.ones(3)}), label="y")
