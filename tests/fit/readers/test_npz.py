"""Arrays by name: .npz files and folders of .npy."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import DataError, QornnError
from qornn.fit.readers import read
from qornn.fit.readers.npz import NAMES, read_npz


def npz(folder, **arrays):
    np.savez(folder / "d.npz", **arrays)
    return folder / "d.npz"


X, Y = np.arange(24.0).reshape(4, 6), np.array([0, 1, 0, 1])


def broken(x, place, value):
    x = np.array(x)
    x[place] = value
    return x


def test_train_and_test_parts(tmp_path):
    data = read(npz(tmp_path, x_train=X, y_train=Y, x_test=X[:2], y_test=Y[:2], other=np.ones(3)))
    assert data.train.x.x.shape == (4, 6, 1)
    assert (data.train.x.x[:, :, 0] == X).all()
    assert data.test.y.tolist() == [0, 1]


def test_one_part_has_no_test(tmp_path):
    data = read(npz(tmp_path, x=X.reshape(4, 3, 2), y=Y[:, None]))
    assert data.test is None
    assert data.train.x.x.shape == (4, 3, 2)
    assert data.train.y.shape == (4,)


def test_lengths_cut_the_padding_whatever_it_holds(tmp_path):
    padded = broken(X, (1, slice(4, 6)), np.nan)
    data = read(npz(tmp_path, x=padded, y=Y, lengths=np.array([6, 4, 6, 1])))
    parts = data.train.for_estimator()
    assert [len(part) for part in parts] == [6, 4, 6, 1]
    assert np.isfinite(data.train.x.x).all()
    assert (parts[1][:, 0] == X[1, :4]).all()


def test_lengths_that_are_all_full_are_no_padding(tmp_path):
    assert read(npz(tmp_path, x=X, y=Y, lengths=np.full(4, 6))).train.x.lengths is None


def test_integers_stay_integers_and_whole_labels_become_them(tmp_path):
    data = read(npz(tmp_path, x=X.astype(np.int16), y=Y.astype(np.float32)))
    assert data.train.x.x.dtype == np.int16
    assert data.train.y.dtype.kind == "i"


def test_labels_may_be_text_or_bytes(tmp_path):
    assert read(npz(tmp_path, x=X, y=np.array(["a", "b", "a", "é"]))).train.y.tolist() == ["a", "b", "a", "é"]
    assert read(npz(tmp_path, x=X, y=np.array([b"a", b"b", b"a", b"b"]))).train.y.tolist() == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": broken(X, (2, 3), np.nan), "y": Y}, r"a missing value, at row 2, column 3, counted from 0: x\[2, 3\]"),
        ({"x_train": broken(X, (0, 5), np.inf), "y_train": Y}, r"an infinite value at row 0, column 5"),
        ({"x": broken(X.reshape(4, 3, 2), (1, 2, 1), np.nan), "y": Y}, "row 1, column 2, channel 1"),
        ({"x": broken(X, (1, 2), np.nan), "y": Y, "lengths": np.array([6, 3, 6, 6])}, "row 1, column 2"),
        ({"x": X, "label": Y}, "holds label, x; needed are x_train, y_train"),
        ({"x": X, "y": Y, "x_train": X}, "both x and x_train"),
        ({"x": X, "y": Y, "x_test": X}, "x_test alone"),
        ({"x": X, "y": Y[:3]}, r"shape \(3,\) for 4 sequences"),
        ({"x": X[0], "y": Y}, r"float64 of shape \(6,\)"),
        ({"x": X.astype(str), "y": Y}, r"give numbers of shape \(N, T\)"),
        ({"x": X[:0], "y": Y[:0]}, "is empty"),
        ({"x": X, "y": Y, "lengths": np.array([6, 0, 6, 6])}, r"is 0 at row 1; lengths lie in 1\.\.6"),
        ({"x": X, "y": Y, "lengths": np.array([6, 7, 6, 6])}, r"is 7 at row 1; lengths lie in 1\.\.6"),
        ({"x": X, "y": Y, "lengths": np.ones(4)}, "4 whole numbers"),
        ({"x_train": X, "y_train": Y, "lengths": np.full(4, 6)}, "lengths but no x;"),
        ({"x": X, "y": np.array([0, 1, np.nan, 1])}, "nan as label at row 2"),
        ({"x": X, "y": Y * 1j}, "labels are numbers or text"),
        ({"x": np.array([[1], [1, 2]], object), "y": Y[:2]}, r"allow_pickle=False; .*with an array `lengths`"),
        ({"x": X, "y": Y.astype(object)}, r"text labels as y\.astype\(str\)"),
        ({"x": X, "y": Y, "x_test": np.ones((2, 6, 3)), "y_test": Y[:2]}, "1 channels, test sequences 3"),
    ],
)
def test_bad_arrays_are_refused_in_words(arrays, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read(npz(tmp_path, **arrays))


NEAR = {
    "length": "lengths", "len": "lengths", "lenghts": "lengths", "Lengths": "lengths", "X": "x", "Y": "y",
    "length_train": "lengths_train", "lengths_trian": "lengths_train", "train_lengths": "lengths_train",
    "LENGTHS_TEST": "lengths_test", "len_test": "lengths_test", "lengthstest": "lengths_test",
    "xtest": "x_test", "X_test": "x_test", "x-test": "x_test", "test_x": "x_test", "y_tests": "y_test",
    "y.train": "y_train", "x_training": "x_train",
}  # fmt: skip


@pytest.mark.parametrize(("name", "known"), NEAR.items())
def test_an_array_that_is_nearly_named_is_refused_with_the_right_name(name, known, tmp_path):
    arrays = {"x": X, "y": Y} if known in ("lengths", "x", "y") else {"x_train": X, "y_train": Y}
    with pytest.raises(DataError, match=f"holds {name}; did you mean {known}\\? Rename it, or leave it out"):
        read(npz(tmp_path, **arrays, **{name: Y}))


@pytest.mark.parametrize("name", ["other", "id_train", "ids_train", "t_train", "z", "x_val", "weights", "label"])
def test_an_array_of_another_name_is_left_out_and_told(name, tmp_path):
    data = read(npz(tmp_path, x_train=X, y_train=Y, **{name: np.ones(3)}))
    assert data.notes == (f"{name} is left out; names are {NAMES}",)


def test_an_array_that_comes_twice_is_refused(tmp_path):
    path = npz(tmp_path, x=X, y=Y)
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("y.npy", file.read("y.npy"))
    with pytest.raises(DataError, match="holds y twice"):
        read(path)


def test_other_files_are_refused_in_words(tmp_path):
    for name, words in (("a.npz", "cannot be read as arrays"), ("a.xyz", "not a known kind")):
        (tmp_path / name).write_text("hello")
        with pytest.raises(DataError, match=words):
            read(tmp_path / name)
    with pytest.raises(DataError, match="there is no data at"):
        read(tmp_path / "none.npz")
    np.save(tmp_path / "b.npy", X)
    (tmp_path / "b.npy").rename(tmp_path / "b.npz")
    with pytest.raises(DataError, match=r"numpy\.savez"):
        read(tmp_path / "b.npz")


def _stored(compressed):
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, x=X, y=Y)
    return file.getvalue()


@given(st.sampled_from([_stored(False), _stored(True)]), st.data())
def test_a_damaged_file_is_our_error_or_still_arrays(tmp_path_factory, whole, draw):
    damaged = bytearray(whole)
    for _ in range(draw.draw(st.integers(1, 4))):
        damaged[draw.draw(st.integers(0, len(whole) - 1))] = draw.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("npz") / "d.npz"
    path.write_bytes(damaged[: draw.draw(st.integers(1, len(whole)))])
    try:
        read_npz(path)
    except QornnError:
        return


def test_the_name_of_an_array_cannot_leave_the_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as file:
        file.writestr("../x.npy", b"")
    with pytest.raises(DataError, match="needed are x_train"):
        read(tmp_path / "d.npz")


def test_the_digest_is_of_what_was_read(tmp_path):
    first = read(npz(tmp_path, x=X, y=Y)).digest()
    assert read(npz(tmp_path, x=X, y=Y, other=X)).digest() == first
    assert read(npz(tmp_path, x=X, y=Y[::-1])).digest() != first
    ended = np.zeros_like(X)  # equal samples to the last bit: only the lengths differ
    shorter = read(npz(tmp_path, x=ended, y=Y, lengths=np.array([6, 6, 6, 5])))
    assert shorter.digest() != read(npz(tmp_path, x=ended, y=Y)).digest()


def test_missing_samples_pass_where_they_are_held(tmp_path):
    path = npz(tmp_path, x=broken(X, (2, 3), np.nan), y=Y)
    assert np.isnan(read(path, hold=True).train.x.x[2, 3, 0])
    with pytest.raises(DataError, match="--missing hold"):
        read(path)
    with pytest.raises(DataError, match="an infinite value at row 2"):
        read(npz(tmp_path, x=broken(X, (2, 3), np.inf), y=Y), hold=True)


def test_groups_are_read_as_text_of_both_parts(tmp_path):
    people = {"groups_train": np.array([1, 1, 2, 2]), "groups_test": np.array([b"1", b"3"])}
    data = read(npz(tmp_path, x_train=X, y_train=Y, x_test=X[:2], y_test=Y[:2], **people))
    assert (data.train.groups.tolist(), data.test.groups.tolist()) == (["1", "1", "2", "2"], ["1", "3"])
    assert read(npz(tmp_path, x=X, y=Y, groups=np.array([1.0, 2, 3, 4]))).train.groups.tolist() == ["1", "2", "3", "4"]
    assert read(npz(tmp_path, x=X, y=Y)).train.groups is None


def test_groups_are_part_of_what_the_figures_follow_from(tmp_path):
    digests = {read(npz(tmp_path, x=X, y=Y, **g)).digest() for g in ({}, {"groups": Y}, {"groups": 1 - Y})}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"groups": np.arange(3)}, r"groups of .* is int64 of shape \(3,\); give 4 numbers or texts"),
        ({"groups": np.array(["a", "b", "", "c"])}, "holds '' at row 2 of groups, which is not a group"),
        ({"groups": np.array([1, np.nan, 2, 3])}, "holds 'nan' at row 1 of groups, which is not a group"),
        ({"groups_test": Y}, "holds groups_test but no x_test"),
        ({"group": Y}, "holds group; did you mean groups"),
    ],
)
def test_groups_that_fit_nothing_are_refused(arrays, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read(npz(tmp_path, x=X, y=Y, **arrays))


def test_a_column_of_groups_is_of_tables(tmp_path):
    with pytest.raises(QornnError, match=r"--group names a column of a CSV file, .*; name it groups in there"):
        read(npz(tmp_path, x=X, y=Y), group="person")
