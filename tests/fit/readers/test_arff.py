"""The .arff files of the archives."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import DataError, QornnError
from qornn.fit.problem import kind_of
from qornn.fit.readers import read

FLAT = "% made by hand\n@RELATION Toy\n@attribute t0 numeric\n@ATTRIBUTE 't 1' REAL\n@attribute target {1,-1}\n@data\n"
BAGS = """@relation Toy
@attribute bag relational
  @attribute t0 numeric
  @attribute t1 numeric
  @attribute t2 numeric
@end bag
@attribute activity {Walking, 'Standing still'}
@data
"""


def arff(folder, text):
    (folder / "d.arff").write_text(text, encoding="utf-8")
    return folder / "d.arff"


def test_one_series_per_row_and_its_class(tmp_path):
    data = read(arff(tmp_path, FLAT + "0.5,1,-1\n% a comment\n 2, 3 ,1\n"))
    assert data.train.x.x[:, :, 0].tolist() == [[0.5, 1], [2, 3]]
    assert data.train.y.tolist() == [-1, 1]
    assert not data.notes


def test_a_relational_attribute_holds_the_dimensions(tmp_path):
    text = BAGS + "'1,2,3\\n10,20,30.5',Walking\n\"4,5,6\\n40,50,60\",'Standing still'\n"
    first, second = read(arff(tmp_path, text)).train.for_estimator()
    assert first.tolist() == [[1, 10], [2, 20], [3, 30.5]]
    assert second.tolist() == [[4, 40], [5, 50], [6, 60]]
    assert read(arff(tmp_path, text)).train.y.tolist() == ["Walking", "Standing still"]


def test_a_numeric_last_attribute_is_a_value_to_predict(tmp_path):
    data = read(arff(tmp_path, FLAT.replace("{1,-1}", "numeric") + "0.5,1,7\n2,3,8\n"))
    assert data.train.y.tolist() == [7, 8]
    assert kind_of(data.train.y, "auto") == "regress"
    assert data.notes == ("attribute 'target', the last, is taken as the value to predict",)


def test_question_marks_at_the_end_of_all_dimensions_end_the_series(tmp_path):
    data = read(arff(tmp_path, BAGS + "'1,2,?\\n4,5,?',Walking\n'1,2,3\\n4,5,6.5',Walking\n"))
    assert [len(part) for part in data.train.for_estimator()] == [2, 3]
    assert data.notes == ("1 of 2 series end before the last sample: ? at the end are not samples",)


def test_missing_samples_are_refused_or_held(tmp_path):
    path = arff(tmp_path, BAGS + "'1,?,3\\n4,5,?',Walking\n")
    with pytest.raises(DataError, match=r"d\.arff holds a missing value at row 9, dimension 1, sample 2, .* hold"):
        read(path)
    want = [[1, 4], [np.nan, 5], [3, np.nan]]
    np.testing.assert_array_equal(read(path, hold=True).train.x.x[0], want)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no line @data"),
        (FLAT, "has no rows after @data"),
        ("@data\n1,2\n", "has 0 attributes"),
        ("hello\n", "'hello' at row 1, before the line @data"),
        ("@attribute x\n@data\n", "'@attribute x' at row 1, .* write @attribute NAME TYPE"),
        (FLAT + "1,2\n", "2 cells at row 7, counted from 1, but 3 attributes"),
        (FLAT + "1,2,3,1\n", "4 cells at row 7"),
        (FLAT + "1,2,?\n", "holds no label at row 7"),
        (FLAT + "1,2,5\n", "label '5' at row 7, counted from 1, which 'target' does not list"),
        (FLAT + "1,x,1\n", "'x', which is not a finite number, at row 7, sample 2"),
        (FLAT + "?,?,1\n", "holds no samples at row 7"),
        (FLAT + "{0 1, 2 1}\n", "sparse row, in braces, at row 7"),
        (FLAT + "1,'2,1\n", "a quote at row 7, counted from 1, that is not closed"),
        (FLAT.replace("numeric", "string") + "1,2,1\n", "'t0', which is neither a sample nor the last"),
        (FLAT.replace("{1,-1}", "date") + "1,2,1\n", "'date' as type of its last attribute"),
        (FLAT.replace("{1,-1}", "numeric") + "1,2,?\n", "a missing value at row 7, as the value to predict"),
        (BAGS + "'1,2\\n3,4,5',Walking\n", "2 samples at row 9, dimension 1, .* its attributes are 3"),
        (BAGS + "'1,2,3\\n3,4,5',Walking\n'1,2,3',Walking\n", "1 dimensions at row 10, .* but 2 in the first"),
        (BAGS.replace("t1 numeric", "t1 string") + "'1,2,3',Walking\n", "'t1' at row 4, which is not numeric"),
    ],
)
def test_bad_files_are_refused_with_their_row(text, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read(arff(tmp_path, text))


def test_no_line_takes_long(tmp_path):
    """Text on which a careless pattern would go back and forth."""
    began = time.monotonic()
    for line in ("'" + "\\'" * 50_000, " " * 50_000 + '"', "a" * 50_000 + "'", "''" * 50_000):
        with pytest.raises(DataError):
            read(arff(tmp_path, FLAT + line + "\n"))
        with pytest.raises(DataError):
            read(arff(tmp_path, "@attribute " + line + "\n" + FLAT))
    assert time.monotonic() - began < 5


@given(st.text(alphabet="@dat 012,.?-\n'\"\\{}%n\x00é", max_size=60), st.sampled_from(["", FLAT, BAGS]), st.booleans())
def test_any_text_is_data_or_our_error(tmp_path_factory, text, head, hold):
    path = arff(tmp_path_factory.mktemp("arff"), head + text)
    try:
        data = read(path, hold=hold)
    except QornnError:
        return
    assert len(data.train) == len(data.train.x) > 0
    assert hold or np.isfinite(data.train.x.x).all()
