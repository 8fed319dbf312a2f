import torch

from qornn.recurrence import pool


def test_memory_is_used_again_only_when_nothing_refers_to_it():
    size = pool.SMALLEST // 4
    first = pool.empty(size)
    address = first.data_ptr()
    view = first[5:].view(-1)
    del first
    other = pool.empty(size)
    assert other.data_ptr() != address  # the view still lives there
    del view
    assert pool.empty(size).data_ptr() == address


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(pool, "KEPT_BYTES", 3 * pool.SMALLEST)
    tensors = [pool.empty(pool.SMALLEST // 4 + i) for i in range(5)]
    for i, t in enumerate(tensors):
        t.fill_(i)
    assert [float(t[-1]) for t in tensors] == [0, 1, 2, 3, 4]
    del tensors, t
    pool.empty(pool.SMALLEST // 4)
    assert len(pool._blocks) <= 3


def test_many_small_blocks_are_kept_and_two_large_ones():
    for size, kept in ((pool.SMALLEST, 6), (pool.KEPT_BYTES, pool.KEPT)):
        pool._blocks.clear()
        tensors = [pool.empty(size // 4) for _ in range(6)]
        assert len(pool._blocks) == kept
        del tensors
    pool._blocks.clear()


def test_small_and_shaped():
    assert pool.empty(3, 4).shape == (3, 4)
    big = pool.empty(2, pool.SMALLEST // 4, 1)
    assert big.shape == (2, pool.SMALLEST // 4, 1)
    assert big.dtype == torch.float32


def test_defaults_of_torch_change_neither_kind_nor_place():
    """The kernels write float32 into it: with fewer bytes they would write past its end."""
    torch.set_default_dtype(torch.float16)
    try:
        with torch.device("meta"):
            small, big = pool.empty(3, 4), pool.empty(pool.SMALLEST // 4)
    finally:
        torch.set_default_dtype(torch.float32)
    assert {small.dtype, big.dtype} == {torch.float32}
    assert {small.device.type, big.device.type} == {"cpu"}
