import numpy as np
import pytest
import torch

from qornn.errors import DataError, SettingsError
from qornn.tasks.ptb import ALPHABET, END_OF_LINE, PROTOCOLS, PTB, cut, read_text

SYMBOLS = ALPHABET + "\n"


def spell(codes):
    return "".join(SYMBOLS[c] for c in codes)


def encode(text):
    return np.array([SYMBOLS.index(c) for c in text], np.uint8)


def pairs(text, protocol, T):
    """What each sequence reads and predicts, as strings."""
    rows = cut(encode(text), protocol, T)
    return [(spell(row[:n]), spell(row[1 : n + 1])) for row, n in zip(rows.codes, rows.lengths, strict=True)]


def test_the_alphabet_is_sorted_and_has_49_characters():
    assert len(ALPHABET) == len(set(ALPHABET)) == END_OF_LINE == 49
    assert list(ALPHABET) == sorted(ALPHABET)


def test_lines_are_stripped_and_ended(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b" the N dogs \n\n no\r\n a\\b")
    assert spell(read_text(path)) == "the N dogs\n\nno\na\\b\n"


@pytest.mark.parametrize(("character", "raw"), [("A", b"A"), ("é", "é".encode()), ("\t", b"\t"), ("_", b"_")])
def test_a_foreign_character_is_named_with_its_line(tmp_path, character, raw):
    path = tmp_path / "a.txt"
    path.write_bytes(b" fine \n\n a b" + raw + b"c \n")
    with pytest.raises(DataError) as caught:
        read_text(path)
    assert f"{path}, line 3: character {character!r} is not in the alphabet; " in str(caught.value)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"")
    with pytest.raises(DataError, match=r"a\.txt is empty"):
        read_text(tmp_path / "a.txt")


def test_an_unreadable_path_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_text(tmp_path)


def test_pieces_read_the_character_before_and_drop_nothing():
    assert pairs("abcdefg\nhi\n", "pieces", 3) == [
        ("\nab", "abc"),
        ("cde", "def"),
        ("fg", "g\n"),
        ("\nhi", "hi\n"),
    ]


def test_truncate_keeps_the_beginning_of_each_line():
    assert pairs("abcdefg\nhi\n", "truncate", 4) == [("\nabc", "abcd"), ("\nhi", "hi\n")]


def test_stream_runs_over_the_ends_of_lines():
    assert pairs("abcdefg\nhi\n", "stream", 5) == [("\nabcd", "abcde"), ("efg\nh", "fg\nhi"), ("i", "\n")]


@pytest.mark.parametrize("T", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("protocol", ["pieces", "stream"])
def test_every_character_is_predicted_exactly_once(protocol, T):
    text = "abcdefg\n\nhi\nabcdefghabcdefgh\na\n"
    assert "".join(target for _, target in pairs(text, protocol, T)) == text


def test_padding_is_zero():
    rows = cut(encode("ab\nc\n"), "pieces", 5)
    assert [row[n + 1 :].tolist() for row, n in zip(rows.codes, rows.lengths, strict=True)] == [[0, 0], [0, 0, 0]]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_batches_have_one_width(small_task, protocol):
    task = small_task("ptb", protocol=protocol, T=7)
    for batch in task.batches("test", 3):
        assert batch.x.shape[1] == batch.target.shape[1] == 7
        assert batch.lengths is not None
        assert batch.lengths.dtype == torch.int64
        assert 1 <= batch.lengths.min() <= batch.lengths.max() <= 7


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_target_is_the_next_input(small_task, protocol):
    batch = small_task("ptb", protocol=protocol).batch("test", 0, 4)
    assert batch.lengths is not None
    for x, target, n in zip(batch.x, batch.target, batch.lengths, strict=True):
        assert torch.equal(target[: n - 1], x[1:n])
        assert not torch.equal(target[:n], x[:n])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_unigram_model_scores_the_baseline(small_task, protocol):
    task = small_task("ptb", protocol=protocol)
    train = task.batch("train", 0, task.size("train"))
    counted = torch.arange(7) < train.lengths[:, None]
    counts = torch.bincount(train.target[counted], minlength=50).double() + 1
    batch = task.batch("test", 0, task.size("test"))
    y = (counts / counts.sum()).log().expand(*batch.x.shape, 50)
    assert task.metric(y, batch) == pytest.approx(task.naive_baseline)


def test_unknown_protocol_suggests_the_nearest():
    with pytest.raises(SettingsError, match=r"unknown ptb protocol 'peices'; .* Did you mean 'pieces'"):
        PTB(protocol="peices")


def test_sequences_have_at_least_one_character():
    with pytest.raises(SettingsError, match="T must be a whole number of at least 1, got 0"):
        PTB(T=0)


# Sequences and characters of train, validation and test; the characters of `pieces` are the paper's 5017K, 393K, 442K.
REAL_COUNTS = {
    "pieces": ([53891, 4249, 4811], [5017482, 393042, 442423], 4.346),
    "truncate": ([42068, 3370, 3761], [4511577, 356746, 398441], None),
    "stream": ([33450, 2621, 2950], [5017482, 393042, 442423], 4.346),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_real_text_has_the_known_counts(real_ptb, protocol):
    task = PTB(protocol=protocol, data_dir=real_ptb)
    sequences, characters, unigram = REAL_COUNTS[protocol]
    splits = ("train", "validation", "test")
    assert [task.size(split) for split in splits] == sequences
    assert [task.batch(split, 0, 60_000).weight for split in splits] == characters
    if unigram is not None:
        assert task.naive_baseline == pytest.approx(unigram, abs=5e-4)


def test_the_real_pieces_spell_the_real_text(real_ptb):
    batch = PTB(data_dir=real_ptb).batch("test", 0, 60_000)
    counted = torch.arange(150) < batch.lengths[:, None]
    with open(f"{real_ptb}/ptb/ptb.test.txt") as lines:
        assert spell(batch.target[counted].tolist()) == "".join(line.strip() + "\n" for line in lines)


def test_a_text_cut_short_is_refused_unless_asked_for(small_task):
    with pytest.raises(DataError, match=r"ptb\.train\.txt is damaged or another text: its md5 .*task\.verify=false"):
        small_task("ptb", verify=True).size("train")
    assert small_task("ptb").size("train") > 0
