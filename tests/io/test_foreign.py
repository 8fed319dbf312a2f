import pytest

from qornn._io.foreign import DEEPEST, Unreadable, is_count, is_number, parse_json, parse_toml, read_bytes, read_json


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting property name"),
        (nested(DEEPEST + 1), "nested more than"),
        (nested(100_000), "recursion"),
        ("9" * 5000, "4300 digits"),
        ('{"a": [1, ' + "9" * 2000 + "]}", "a whole number of 6644 bits"),
    ],
)
def test_json_past_its_limits_is_unreadable(text, message):
    with pytest.raises(Unreadable, match=message) as caught:
        parse_json(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_what_is_within_the_limits_is_read_as_it_is(tmp_path):
    assert parse_json(f'{{"a": {nested(DEEPEST - 1)}, "b": {2**64}}}')["b"] == 2**64
    assert parse_toml("a = 1\nb = [1, 2]") == {"a": 1, "b": [1, 2]}
    (tmp_path / "x.json").write_text('{"é": NaN}', encoding="utf-8")
    assert list(read_json(tmp_path / "x.json")) == ["é"]


@pytest.mark.parametrize("text", ["a = ", f"a = {nested(2000)}", f"a = {'9' * 5000}", f"a = 0x{'f' * 5000}"])
def test_toml_past_its_limits_is_unreadable(text):
    with pytest.raises(Unreadable):
        parse_toml(text)


def test_only_regular_files_of_a_sane_size_are_read(tmp_path):
    (tmp_path / "large").write_bytes(bytes(100))
    assert read_bytes(tmp_path / "large", largest=100) == bytes(100)
    for path, message in (
        (tmp_path, "not a regular file"),
        (tmp_path / "none", "No such file"),
        (tmp_path / ("x" * 300), "name too long"),
        (tmp_path / "a\0b", "null"),
    ):
        with pytest.raises(Unreadable, match=message):
            read_bytes(path)
    with pytest.raises(Unreadable, match="larger than 99 bytes"):
        read_bytes(tmp_path / "large", largest=99)


def test_numbers_and_counts():
    assert all(map(is_number, (0, -1.5, 10**300, float("inf"))))
    assert not any(map(is_number, (True, None, "1", 10**400, [])))
    assert all(map(is_count, (0, 7, 2**53)))
    assert not any(map(is_count, (-1, True, 1.0, 2**54, None, "1")))
