import hashlib

import numpy as np
import pytest
import torch

from qornn.errors import DataError, SettingsError
from qornn.tasks.idx import read_idx
from qornn.tasks.mnist import PMnist, SMnist, permutation, read_images


def pixels_of(batch):
    """The bytes that the inputs came from."""
    return (batch.x.squeeze(-1) * 255).round().to(torch.uint8).numpy()  # (B, 784)


def test_permutation_is_the_published_one():
    assert permutation()[:8].tolist() == [319, 576, 323, 107, 355, 716, 197, 20]
    digest = hashlib.sha256(permutation().astype("<i8").tobytes()).hexdigest()
    assert digest == "96240fe27409981c3ed3e92c20d995f7103a94c2282307bc776923030113be74"


def test_smnist_reads_the_test_images_in_order(small_task, data_folder):
    images = read_idx(data_folder / "mnist/t10k-images-idx3-ubyte.gz", ndim=3).reshape(20, 784)
    batch = small_task("smnist").batch("test", 0, 20)
    assert np.array_equal(pixels_of(batch), images)
    assert torch.equal(batch.x.squeeze(-1), torch.from_numpy(images.astype(np.float32) / np.float32(255)))
    assert batch.target.tolist() == [i % 10 for i in range(20)]


def test_pmnist_is_smnist_in_another_order(small_task):
    plain, permuted = (small_task(name).batch("train", 1, 5, seed=2) for name in ("smnist", "pmnist"))
    assert torch.equal(permuted.x, plain.x[:, torch.from_numpy(permutation().copy())])
    assert torch.equal(permuted.target, plain.target)


def test_the_split_is_the_same_for_every_run_seed(small_task):
    train = [{p.tobytes() for p in pixels_of(small_task("smnist").batch("train", 0, 38, seed=s))} for s in (0, 1)]
    assert train[0] == train[1]
    assert len(train[0]) == 38


def test_images_keep_their_labels_through_the_split(small_task, data_folder):
    images = read_idx(data_folder / "mnist/train-images-idx3-ubyte.gz", ndim=3)
    label = {image.tobytes(): i % 10 for i, image in enumerate(images)}
    task = small_task("smnist")
    for split, size in (("train", 38), ("validation", 12)):
        batch = task.batch(split, 0, size)
        assert [label[p.tobytes()] for p in pixels_of(batch)] == batch.target.tolist()


def test_no_validation_gives_all_images_to_training(small_task):
    task = small_task("smnist", validation=0)
    assert task.size("train") == 50
    assert task.size("validation") == 0
    assert list(task.batches("validation", 8)) == []


@pytest.mark.parametrize("validation", [-1, 60_000, "many"])
def test_impossible_validation_is_refused_at_once(validation):
    with pytest.raises(SettingsError, match="validation must"):
        SMnist(validation=validation)


def test_validation_larger_than_the_file_is_refused(small_task):
    with pytest.raises(SettingsError, match="some of the 50 training images, got 50; take at most 49"):
        small_task("smnist", validation=50).size("train")


def test_settings_do_not_touch_the_files():
    assert PMnist(data_dir="/nowhere").naive_baseline == 10.0


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        ((3, 27, 28), [1, 2, 3], "images of 27x28, not 28x28"),
        ((3, 28, 28), [1, 2], "3 images and .* 2 labels"),
        ((3, 28, 28), [1, 10, 3], "the label 10, outside 0..9"),
        ((0, 28, 28), [], "no image"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, write_idx, images, labels, message):
    paths = write_idx(tmp_path / "images", np.zeros(images)), write_idx(tmp_path / "labels", np.array(labels))
    with pytest.raises(DataError, match=message):
        read_images(*paths)


def test_a_truncated_file_leaves_nothing_half_loaded(tmp_path, write_idx, data_folder):
    for path in (data_folder / "mnist").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    broken = tmp_path / "t10k-images-idx3-ubyte.gz"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-100])
    task = SMnist(validation=12, data_dir=str(tmp_path))
    for _ in range(2):
        with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz is damaged"):
            task.batch("train", 0, 4)
    broken.write_bytes(whole)
    assert task.size("train") == 38


@pytest.mark.slow
def test_the_real_files_are_mnist(real_mnist):
    task = SMnist(validation=0, data_dir=real_mnist)
    train, test = (task.batch(split, 0, 60_000) for split in ("train", "test"))
    # Label counts and pixel statistics of the published files.
    assert torch.bincount(train.target).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert torch.bincount(test.target).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert train.x.mean().item() == pytest.approx(0.1307, abs=5e-5)
    assert train.x.std().item() == pytest.approx(0.3081, abs=5e-5)


def test_the_real_split_is_50_000_and_10_000(real_mnist):
    task = PMnist(data_dir=real_mnist)
    assert [task.size(split) for split in ("train", "validation", "test")] == [50_000, 10_000, 10_000]
