"""CSV files, wide and long."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import DataError, QornnError
from qornn.fit.readers import read


def table(folder, text, name="d.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def series(data):
    return [part[:, 0].tolist() for part in data.train.for_estimator()]


def test_a_name_that_is_too_long_is_no_data(tmp_path):
    with pytest.raises(DataError, match="there is no data at"):
        read(tmp_path / ("a" * 300 + ".csv"))


def test_wide_with_a_header(tmp_path):
    data = read(table(tmp_path, "t0,t1,label,t2\n0.5,1,a,2\n3,4,b,5.5\n"))
    assert series(data) == [[0.5, 1, 2], [3, 4, 5.5]]
    assert data.train.y.tolist() == ["a", "b"]
    assert not data.notes


@pytest.mark.parametrize("label", [None, "3"])
def test_wide_without_a_header_takes_the_last_column_and_says_so(label, tmp_path):
    data = read(table(tmp_path, "0.5,1,walk\n3,4,sit\n"), label=label)
    assert series(data) == [[0.5, 1], [3, 4]]
    assert data.train.y.tolist() == ["walk", "sit"]
    assert data.notes == (() if label else ("column 3, the last, is taken as the label; --label names another",))


def test_the_label_may_stand_first_as_in_the_ucr_archive(tmp_path):
    text = "1.0e+00\t0.5\t0.25\n-1.0e+00\t1\t2\n"
    data = read(table(tmp_path, text, "d.tsv"), label="1")
    assert data.train.y.tolist() == [1, -1]
    assert data.train.y.dtype.kind == "i"
    assert series(data) == [[0.5, 0.25], [1, 2]]


def test_empty_cells_at_the_end_are_a_shorter_series(tmp_path):
    data = read(table(tmp_path, "label,a,b,c\n1,1.5,2,3\n2,4,5,\n2,6\n"))
    assert series(data) == [[1.5, 2, 3], [4, 5], [6]]
    assert "2 of 3 series end before the last column" in data.notes[0]


def test_whole_numbers_are_read_as_the_counts_of_a_device(tmp_path):
    assert read(table(tmp_path, "1,2,a\n3,4,b\n")).train.x.x.dtype == np.int16
    assert read(table(tmp_path, "1,2.5,a\n3,4,b\n")).train.x.x.dtype == np.float64
    assert read(table(tmp_path, "1,40000,a\n3,4,b\n")).train.x.x.dtype == np.float64


@pytest.mark.parametrize("first", ["0,1,2", "1,2,3", ",0,1,2"])
def test_the_numbers_that_pandas_writes_over_columns_are_a_header(first, tmp_path):
    index = "0," if first.startswith(",") else ""
    data = read(table(tmp_path, f"{first}\n{index}5.5,6,0\n{index}7,8,1\n"))
    assert series(data) == [[5.5, 6], [7, 8]]
    assert data.train.y.tolist() == [0, 1]
    assert any("left out: it numbers the rows" in note for note in data.notes) == bool(index)


def test_a_column_called_id_is_no_sample(tmp_path):
    data = read(table(tmp_path, "id,a,b,label\n7,1,2,x\n8,3,4,y\n"))
    assert series(data) == [[1, 2], [3, 4]]
    assert data.notes == ("column 1 ('id') is left out: it numbers the rows",)
    assert read(table(tmp_path, "id,a,b\n7,1,2\n7,3,4\n"), label="id").train.y.tolist() == [7, 7]
    assert read(table(tmp_path, "time,a,b\n7,1,2\n7,3,4\n"), label="time").train.y.tolist() == [7, 7]


def test_labels_that_differ_only_as_text_stay_text(tmp_path):
    assert read(table(tmp_path, "1.5,01\n2,1\n")).train.y.tolist() == ["01", "1"]
    assert read(table(tmp_path, "1.5,01\n2,02\n")).train.y.tolist() == [1, 2]


LONG = "id,time,ax,ay,label\nb,2,5,50.5,run\na,0,1,10,walk\nb,1,4,40,run\na,1,2,20,walk\na,2,3,30,walk\n"


def test_long_is_sorted_by_time_within_each_id(tmp_path):
    data = read(table(tmp_path, LONG))
    assert data.channels == ("ax", "ay")
    assert data.train.y.tolist() == ["run", "walk"]
    parts = data.train.for_estimator()
    assert parts[0].tolist() == [[4, 40], [5, 50.5]]
    assert parts[1].tolist() == [[1, 10], [2, 20], [3, 30]]


def test_long_with_names_of_its_own_and_moments(tmp_path):
    text = "when;who;ax;activity\n2024-05-01T12:00:01;1;2;up\n2024-05-01T12:00:00;1;1;up\n2024-05-01;2;7;down\n"
    data = read(table(tmp_path, text), id="who", time="when", label="activity")
    assert series(data) == [[1, 2], [7]]
    assert data.train.y.tolist() == ["up", "down"]


def test_a_test_set_of_its_own_and_labels_of_one_kind(tmp_path):
    train, test = table(tmp_path, "1,2,1\n3,4,2\n"), table(tmp_path, "5,6.5,1\n7,8,odd\n", "t.csv")
    data = read(train, test=test)
    assert data.train.y.tolist() == ["1", "2"]
    assert data.test.y.tolist() == ["1", "odd"]
    assert data.train.x.x.dtype == data.test.x.x.dtype == np.float64


def test_labels_of_both_files_are_compared_as_they_are_written(tmp_path):
    train, test = table(tmp_path, "1.5,01\n2,1\n"), table(tmp_path, "5.5,01\n7,01\n", "t.csv")
    data = read(train, test=test)
    assert data.train.y.tolist() == ["01", "1"]
    assert data.test.y.tolist() == ["01", "01"]
    train, test = table(tmp_path, "1.5,1.0\n2,x\n"), table(tmp_path, "5.5,1.0\n", "t.csv")
    assert read(train, test=test).test.y.tolist() == ["1.0"]
    train, test = table(tmp_path, "1.5,1\n2,2\n"), table(tmp_path, "5.5,1.5\n", "t.csv")
    assert read(train, test=test).train.y.tolist() == [1.0, 2.0]


def test_empty_lines_come_before_the_table(tmp_path):
    assert series(read(table(tmp_path, "\n \n1.5;2;x\n3;4;y\n"))) == [[1.5, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a;b;label\n1,5;2,5;x\n", {}, r"'1,5', .* at row 2, column 1 \('a'\), .*; numbers take a point, as in 1\.5"),
        ("1,5;2,5;x\n3,5;4,5;y\n", {}, "'1,5', .* at row 1, column 1, .*; numbers take a point"),
        ("1.5 2 x\n3 4 y\n", {}, "no columns but the label.* comma, semicolon or tab"),
        ("a,b,label\n1,,x\n,2,y\n", {}, r"a missing value at row 3, column 1 \('a'\), counted from 1"),
        ("1,2,x\n3,nan,y\n", {}, "a missing value at row 2, column 2, counted from 1"),
        ("1,2,x\n3,NA,y\n", {}, "a missing value at row 2, column 2"),
        ("1,2,x\n3,inf,y\n", {}, "'inf', which is not a finite number, at row 2, column 2"),
        ("1,2,x\n3,1o,y\n", {}, "'1o', which is not a finite number, at row 2, column 2"),
        ("a,b,label\n1,2,x\n3,4,\n", {}, r"no label at row 3, column 3 \('label'\)"),
        ("1,2,x\n3,4\n", {}, "2 cells at row 2, counted from 1, of 3 columns; end a shorter series with empty cells"),
        ("1,2,x\n3,4,5,y\n", {}, "4 cells at row 2"),
        ("a,b,label\n,,x\n", {}, "no samples at row 2"),
        ("", {}, "has no rows of data"),
        ("a,b,label\n", {}, "has no rows of data"),
        ("label\nx\n", {}, "no columns but the label"),
        ("id\n3\n", {}, "no columns but the label"),
        ("a,a,label\n1,2,x\n", {}, "two columns named 'a'"),
        ("a,b,label\n1,2,x\n", {"label": "lable"}, r"--label 'lable' is not a column .* 'a', 'b', 'label'; .* 1\.\.3"),
        ("1,2,x\n", {"label": "4"}, r"no header; give such a name, or a number in 1\.\.3"),
        ("1,2,x\n", {"id": "1"}, "has no header"),
        ("id,a,label\n1,2,x\n", {"id": "id"}, "name the other with --time"),
        ("time,a,label\n1,2,x\n", {"time": "time"}, "name the other with --id"),
        ("id,time,label\n1,2,x\n", {}, "no columns but id, time and label"),
        ("time,a,b,label\n0,1,2,x\n1,1,2,x\n", {}, r"a column 'time' but none called id.* --id"),
        ("id,stamp,a,label\n1,0,2,x\n1,1,3,x\n", {}, r"repeats id '1' at row 3, .*; .* --time"),
        ("id,time,a\n1,2,x\n", {"label": "id"}, "cannot be both id and label"),
        (LONG.replace("a,1,2,20", "a,1,2,"), {}, r"a missing value at row 5, column 4 \('ay'\)"),
        (LONG.replace("a,1,2,20", "a,2,2,20"), {}, "time 2 of id 'a' twice, at rows 5 and 6"),
        (LONG.replace("a,1,2,20,walk", "a,1,2,20,sit"), {}, "id 'a' the label 'walk' at row 3 and 'sit' at row 5"),
        (LONG.replace("a,1,2,20,walk", "a,1,2,20,"), {}, "no label at row 5"),
        (LONG.replace("a,1,2,20,walk", "a,1,2,20"), {}, "4 cells at row 5"),
        (LONG.replace("a,1,2", "a,,2"), {}, r"a missing value at row 5, column 2 \('time'\)"),
        (LONG.replace("b,2,5", "b,noon,5"), {}, "'noon' as time at row 2"),
        (LONG.replace("a,1,2", ",1,2"), {}, "no id at row 5"),
    ],
)
def test_bad_tables_are_refused_in_words(text, options, words, tmp_path):
    with pytest.raises(QornnError, match=words):
        read(table(tmp_path, text), **options)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"\xff\xfe1,2\n")
    with pytest.raises(DataError, match="cannot be read as CSV"):
        read(tmp_path / "d.csv")


QUOTES = [
    # an open quote takes the rows to the next quote, or to the end, into one cell
    ('a,b,label\n1,2,x\n3,4,"y\n5,6,x\n7,8,"y\n9,9,x\n', 3),
    ('a,b,label\n1,2,x\n3,4,"y\n5,6,x\n7,8,y\n', 3),
    ('1,2,x\n3,"4,y\n5,6,x\n', 2),
    ('1,2,x\n\n3,4,"y"z\n', 3),
    ('1,2,"a\nlabel of two lines"\n3,4,b\n', 1),
    ('1,2,x\n3,4,"' + "y\n" * 100_000, 2),
]


@pytest.mark.parametrize(("text", "line"), QUOTES)
def test_a_quote_left_open_swallows_no_rows(text, line, tmp_path):
    with pytest.raises(DataError, match=rf"d\.csv has a quote in line {line} that .*; close it, or leave quotes out"):
        read(table(tmp_path, text))


def test_a_cell_without_end_is_refused(tmp_path):
    with pytest.raises(DataError, match="a cell that is too long in line 2"):
        read(table(tmp_path, "1,2,x\n3,4," + "y" * 200_000 + "\n"))


def test_text_of_two_bytes_a_letter_is_refused(tmp_path):
    (tmp_path / "d.csv").write_bytes("1,2,x\n3,4,y\n".encode("utf-16-le"))
    with pytest.raises(DataError, match=r"a NUL byte in line 1; write it as UTF-8 text"):
        read(tmp_path / "d.csv")


@given(
    rows=st.lists(
        st.tuples(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.sampled_from(["a", "b b", 'c"c', "d,d"])),
        min_size=1,
        max_size=6,
    ),
    delimiter=st.sampled_from(",;\t"),
)
def test_what_csv_writes_is_read_back(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    width = max(len(values) for values, _ in rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["label", *(f"t{i}" for i in range(width))])
        for values, label in rows:
            writer.writerow([label, *map(repr, values), *[""] * (width - len(values))])
    data = read(path)
    assert series(data) == [values for values, _ in rows]
    assert data.train.y.tolist() == [label for _, label in rows]


@given(st.text(alphabet="0123,;\t\n\r\"'.-ae \x00é", max_size=60))
def test_any_text_is_data_or_our_error(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    path.write_text(text, encoding="utf-8")
    try:
        data = read(path)
    except QornnError:
        return
    assert len(data.train) == len(data.train.x) > 0
    assert np.isfinite(data.train.x.x).all()


def test_a_label_that_comes_first_as_in_ucr_files_is_found(tmp_path):
    text = "1\t0.5\t0.25\t-0.5\n-1\t0.75\t0.1\t0.3\n1\t0.1\t0.2\t0.9\n"
    data = read(table(tmp_path, text, "Gun_TRAIN.tsv"))
    assert data.train.y.tolist() == [1, -1, 1]
    assert series(data)[0] == [0.5, 0.25, -0.5]
    assert "column 1, the first, is taken as the label" in data.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "1,0.5,0\n2,0.25,1\n1,0.125,0\n",  # both ends could be labels: the last is, as ever
        "0.5,0.25,0.1\n0.5,0.75,0.3\n0.25,0.1,0.2\n",  # neither could be classes
        "1,0.5,0.1\n2,0.75,0.3\n3,0.1,0.2\n",  # the first only numbers the rows
    ],
)
def test_otherwise_the_last_column_is_the_label(text, tmp_path):
    data = read(table(tmp_path, text))
    assert data.train.y.tolist() == [float(line.rpartition(",")[2]) for line in text.splitlines()]
    assert "the last, is taken as the label" in data.notes[0]


def test_text_that_comes_first_is_the_label(tmp_path):
    (tmp_path / "x.tsv").write_text("a\t1\t2\t3\nb\t2\t3\t4\n" * 4, encoding="utf-8")
    data = read(tmp_path / "x.tsv")
    assert data.train.y.tolist() == ["a", "b"] * 4
    assert data.train.x.x[:2, :, 0].tolist() == [[1, 2, 3], [2, 3, 4]]


def test_an_underscore_is_no_part_of_a_number(tmp_path):
    (tmp_path / "x.csv").write_text("1,2,a\n1_0,2,b\n", encoding="utf-8")
    (tmp_path / "x.ts").write_text("@classLabel true a b\n@data\n1,2:a\n1_0,2:b\n", encoding="utf-8")
    for name, place in (("x.csv", "row 2, column 1"), ("x.ts", "row 4, sample 1")):
        with pytest.raises(DataError, match=f"'1_0', which is not a finite number, at {place}"):
            read(tmp_path / name)


def test_missing_samples_pass_where_they_are_held(tmp_path):
    """Inside a series; empty cells at its end are still no samples."""
    path = table(tmp_path, "1,,2.5,,x\n3,NaN,5,6,y\n,n/a,7,,y\n")
    data = read(path, hold=True)
    assert data.train.x.lengths.tolist() == [3, 4, 3]
    want = [[1, np.nan, 2.5, 0], [3, np.nan, 5, 6], [np.nan, np.nan, 7, 0]]
    np.testing.assert_array_equal(data.train.x.x[:, :, 0], want)
    with pytest.raises(DataError, match=r"a missing value at row 1, column 2, .* --missing hold"):
        read(path)
    with pytest.raises(DataError, match="'inf', which is not a finite number, at row 1, column 2"):
        read(table(tmp_path, "1,inf,2.5,x\n"), hold=True)


def test_missing_samples_of_the_long_format(tmp_path):
    assert np.isnan(read(table(tmp_path, LONG.replace("a,1,2,20", "a,1,2,")), hold=True).train.x.x).sum() == 1
    with pytest.raises(DataError, match=r"row 5, column 2 \('time'\), counted from 1; fill or drop it$"):
        read(table(tmp_path, LONG.replace("a,1,2", "a,,2")), hold=True)


WIDE = "t0,person,t1,label\n1,anna,2,a\n3,02,4,b\n"
LONG_WITH_WHO = "id,time,ax,who,label\nb,1,5,anna,run\na,0,1,bo,walk\nb,0,4,anna,run\na,1,2,bo,walk\n"


def test_a_group_is_no_sample(tmp_path):
    data = read(table(tmp_path, WIDE), group="person")
    assert series(data) == [[1, 2], [3, 4]]
    assert data.train.groups.tolist() == ["anna", "02"]
    assert data.train.y.tolist() == ["a", "b"]


def test_the_label_is_the_last_column_but_the_group(tmp_path):
    data = read(table(tmp_path, "0.5,1,walk,7\n3,4,sit,8\n"), group="4")
    assert (data.train.y.tolist(), data.train.groups.tolist()) == (["walk", "sit"], ["7", "8"])
    assert series(data) == [[0.5, 1], [3, 4]]


def test_of_a_shorter_series_the_group_stays_in_its_column(tmp_path):
    assert read(table(tmp_path, "label,who,a,b\n1,x,1.5,2\n2,y,4\n"), group="who").train.groups.tolist() == ["x", "y"]
    with pytest.raises(DataError, match="has 3 cells at row 3"):
        read(table(tmp_path, "label,a,b,who\n1,1.5,2,x\n2,4,y\n"), group="who")


def test_every_id_has_one_group(tmp_path):
    data = read(table(tmp_path, LONG_WITH_WHO), group="who")
    assert data.channels == ("ax",)
    assert data.train.groups.tolist() == ["anna", "bo"]
    data = read(
        table(tmp_path, LONG_WITH_WHO.replace("who,", "ay,").replace("anna", "1").replace("bo", "2")), group="id"
    )
    assert data.train.groups.tolist() == ["b", "a"]  # each sequence its own


def test_a_group_goes_with_its_row_into_the_test_data(tmp_path):
    other = table(tmp_path, WIDE.replace("anna", "carl"), "t.csv")
    data = read(table(tmp_path, WIDE), test=other, group="person")
    assert (data.train.groups.tolist(), data.test.groups.tolist()) == (["anna", "02"], ["carl", "02"])


@pytest.mark.parametrize(
    ("text", "group", "words"),
    [
        (
            LONG_WITH_WHO.replace("b,0,4,anna", "b,0,4,carl"),
            "who",
            "id 'b' the group 'carl' at row 4 and 'anna' at row 2",
        ),
        (LONG_WITH_WHO.replace("b,0,4,anna", "b,0,4,"), "who", r"has no group at row 4, column 4 \('who'\)"),
        (WIDE.replace("anna", "nan"), "person", r"has no group at row 2, column 2 \('person'\)"),
        (WIDE, "people", "--group 'people' is not a column"),
        (WIDE, "label", r"column 4 \('label'\) of .* cannot be both label and group"),
        (LONG_WITH_WHO, "time", "cannot be both time and group"),
    ],
)
def test_groups_that_are_none_are_refused_with_their_place(text, group, words, tmp_path):
    with pytest.raises(QornnError, match=words):
        read(table(tmp_path, text), group=group)


def test_a_pair_has_its_labels_in_one_column(tmp_path):
    """The test file alone would not tell: no class comes twice in it."""
    train = table(tmp_path, "1\t0.5\t0.25\n2\t0.75\t0.1\n1\t0.1\t0.2\n", "Gun_TRAIN.tsv")
    table(tmp_path, "1\t0.5\t0.75\n2\t0.25\t0.5\n", "Gun_TEST.tsv")
    data = read(train, paired=True)
    assert data.test.y.tolist() == [1, 2]
    assert data.test.x.x[:, :, 0].tolist() == [[0.5, 0.75], [0.25, 0.5]]
