"""The .ts files of the archives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import DataError, QornnError
from qornn.fit.problem import kind_of
from qornn.fit.readers import read

HEAD = "# a comment\n@problemName Toy\n@timeStamps false\n@univariate true\n@classLabel true up down\n@data\n"
VALUES = "@problemName Toy\n@targetlabel true\n@data\n"


def ts(folder, text, name="d.ts"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_one_series_per_row_and_its_class(tmp_path):
    data = read(ts(tmp_path, HEAD + "1,2.5,3:up\n\n4,5:down\n"))
    assert [part[:, 0].tolist() for part in data.train.for_estimator()] == [[1, 2.5, 3], [4, 5]]
    assert data.train.y.tolist() == ["up", "down"]


def test_dimensions_are_channels(tmp_path):
    data = read(ts(tmp_path, "@dimensions 2\n@classLabel true 1 2\n@data\n1,2,3:10,20,30.5:1\n4,5:40,50:2\n"))
    first, second = data.train.for_estimator()
    assert first.tolist() == [[1, 10], [2, 20], [3, 30.5]]
    assert second.tolist() == [[4, 40], [5, 50]]
    assert data.train.y.tolist() == [1, 2]
    assert data.train.y.dtype.kind == "i"


def test_values_to_predict_are_values_even_if_all_are_whole(tmp_path):
    y = read(ts(tmp_path, VALUES + "1,2:3\n4,5:7\n")).train.y
    assert y.tolist() == [3, 7]
    assert kind_of(y, "auto") == "regress"


def test_missing_samples_are_refused_or_held(tmp_path):
    path = ts(tmp_path, HEAD + "1,2,3:up\n1,?,NaN:down\n")
    with pytest.raises(DataError, match=r"d\.ts holds a missing value at row 8, sample 2, .* --missing hold"):
        read(path)
    np.testing.assert_array_equal(read(path, hold=True).train.x.x[1, :, 0], [1, np.nan, np.nan])


def test_the_test_file_of_a_pair_is_found_beside_it(tmp_path):
    train = ts(tmp_path, HEAD + "1,2.5:up\n3,4:down\n", "Toy_TRAIN.ts")
    assert read(train, paired=True).test is None
    ts(tmp_path, HEAD + "5,6:down\n", "Toy_TEST.ts")
    data = read(train, paired=True)
    assert data.test.y.tolist() == ["down"]
    assert data.notes == (
        "Toy_TEST.ts lies beside Toy_TRAIN.ts and is the test set; --test-fraction draws one instead",
    )
    assert read(train).test is None
    own = ts(tmp_path, HEAD + "5,6:up\n7,8:up\n", "own.ts")
    assert read(train, test=own, paired=True).test.y.tolist() == ["up", "up"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no line @data"),
        (HEAD, "has no rows after @data"),
        ("1,2:up\n", "'1,2:up' at row 1, before the line @data"),
        (HEAD + "1,2\n", "holds no label at row 7"),
        (HEAD + "1,2:\n", "holds no label at row 7"),
        (HEAD + "1,2:?\n", "holds no label at row 7"),
        (HEAD + ":up\n", "holds no samples at row 7"),
        (HEAD + "1,2:left\n", "label 'left' at row 7, .* @classLabel does not list"),
        (HEAD + "1,2:up\n1,x:up\n", "'x', which is not a finite number, at row 8, sample 2, counted from 1"),
        (HEAD + "1,inf:up\n", "'inf', which is not a finite number, at row 7, sample 2"),
        (HEAD + "1," + "9x" * 10_000 + ":up\n", "9x…', which is not a finite number"),
        (HEAD + "1,2:3,4:up\n1,2:up\n", "holds 1 dimensions at row 8, counted from 1, not 2"),
        (HEAD + "1,2:3:up\n", "holds 1 samples at row 7, dimension 2, .* 2 in dimension 1"),
        ("@dimensions 3\n" + HEAD + "1:2:up\n", "2 dimensions at row 8, counted from 1, not 3"),
        ("@equalLength true\n" + HEAD + "1,2:up\n1:up\n", "1 samples at row 9, .* 2 in the first series"),
        ("@timeStamps true\n@data\n(0,1),(1,2):a\n", "time stamps"),
        ("@classLabel true a\n@data\n(0,1),(1,2):a\n", "time stamps at row 3"),
        ("@classLabel false\n@data\n1,2\n", "no labels"),
        (VALUES + "1,2:?\n", "a missing value at row 4, as the value to predict"),
        (VALUES + "1,2:high\n", "'high', which is not a finite number, at row 4, as the value"),
        (HEAD + "1,\0:up\n", "NUL byte in line 7"),
    ],
)
def test_bad_files_are_refused_with_their_row(text, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read(ts(tmp_path, text))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "d.ts").write_bytes(b"\xff\xfe@data\n")
    with pytest.raises(DataError, match="cannot be read as text"):
        read(tmp_path / "d.ts")


@given(
    st.text(alphabet="@datclsLbe 0123:,.?-\n\r(\x00é", max_size=60),
    st.sampled_from(["", HEAD, VALUES, "@data\n"]),
    st.booleans(),
)
def test_any_text_is_data_or_our_error(tmp_path_factory, text, head, hold):
    path = ts(tmp_path_factory.mktemp("ts"), head + text)
    try:
        data = read(path, hold=hold)
    except QornnError:
        return
    assert len(data.train) == len(data.train.x) > 0
    assert hold or np.isfinite(data.train.x.x).all()
