"""Parquet files, where pandas and pyarrow are installed."""

import sys

import pytest

from qornn.errors import DataError, SettingsError
from qornn.fit.readers import read


def test_without_the_libraries_the_way_out_is_said(tmp_path, monkeypatch):
    (tmp_path / "d.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingsError, match=r"needs pandas and pyarrow, .* pip install 'qornn\[parquet\]'"):
        read(tmp_path / "d.parquet")


@pytest.fixture
def table(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")

    def write(**columns):
        pandas.DataFrame(columns).to_parquet(tmp_path / "d.parquet")
        return tmp_path / "d.parquet"

    return write


def test_one_series_per_row(table):
    data = read(table(t0=[0.5, 1.0, 2.0], t1=[1.0, 2.0, None], label=["a", "b", "a"]))
    assert [part[:, 0].tolist() for part in data.train.for_estimator()] == [[0.5, 1], [1, 2], [2]]
    assert data.train.y.tolist() == ["a", "b", "a"]


def test_the_long_format(table):
    data = read(table(who=[1, 1, 2], time=[1, 0, 0], ax=[0.5, 1.5, 2.5], label=[3, 3, 4]), id="who")
    assert [part[:, 0].tolist() for part in data.train.for_estimator()] == [[1.5, 0.5], [2.5]]
    assert data.train.y.tolist() == [3, 4]


def test_bad_files_are_refused_with_their_row(table):
    with pytest.raises(DataError, match=r"d\.parquet holds a missing value at row 2, column 1 \('t0'\)"):
        read(table(t0=[0.5, None], t1=[1.0, 2.0], label=["a", "b"]))
    path = table(t0=[0.5], label=["a"])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="cannot be read as parquet"):
        read(path)
