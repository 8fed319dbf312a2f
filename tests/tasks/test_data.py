import hashlib
import io
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from qornn.errors import DataError
from qornn.tasks import data, mnist, ptb
from qornn.tasks.data import RemoteFile, cache_folder, locate

BODY = b"0123456789" * 20_000  # several chunks
FILE = RemoteFile(
    dataset="Toy",
    name="toy.gz",
    folder="toy",
    other_folders=("TOY/raw",),
    other_names=("toy",),
    urls=("http://127.0.0.1:9/toy.gz",),  # the discard port: nothing answers
    checksum="sha256:" + hashlib.sha256(BODY).hexdigest(),
)


def from_urls(*urls):
    return RemoteFile(dataset="Toy", name="toy.gz", folder="toy", urls=urls, checksum=FILE.checksum)


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


@pytest.fixture
def downloads(monkeypatch):
    """Downloads allowed, straight to this machine and with a short patience."""
    monkeypatch.delenv("QORNN_NO_DOWNLOAD")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(data, "TIMEOUT", 5)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        body = BODY[::-1] if self.path == "/wrong" else BODY
        self.send_response(200)
        if self.path != "/unannounced":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:70_000] if self.path == "/truncated" else body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(downloads):
    """The address of a local server, and the paths it was asked for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.seen = []
        serving.daemon_threads = True
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}", serving.seen
        serving.shutdown()
        thread.join(10)


@pytest.mark.parametrize("place", ["toy/toy.gz", "toy/toy", "TOY/raw/toy.gz", "TOY/raw/toy", "toy.gz", "toy"])
def test_every_layout_is_found(tmp_path, place):
    path = put(tmp_path / place)
    assert locate(FILE, tmp_path) == path


def test_the_folder_given_comes_first_then_the_environment_then_the_cache(tmp_path, monkeypatch):
    cached = put(cache_folder() / "toy/toy.gz")
    assert locate(FILE) == cached
    monkeypatch.setenv("QORNN_DATA", str(tmp_path / "env"))
    assert locate(FILE) == cached
    in_environment = put(tmp_path / "env/toy/toy.gz")
    assert locate(FILE) == in_environment
    given = put(tmp_path / "given/toy/toy.gz")
    assert locate(FILE, str(tmp_path / "given")) == given


def test_cache_folder_follows_xdg(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "user-cache/qornn"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache/qornn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache/qornn"


def test_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "d/toy/toy.gz")
    assert locate(FILE, "~/d") == tmp_path / "d/toy/toy.gz"


def test_a_given_folder_without_the_file_is_an_error_even_if_another_has_it(tmp_path, server):
    address, seen = server
    put(cache_folder() / "toy/toy.gz")
    with pytest.raises(DataError, match="The given data folder does not contain it"):
        locate(from_urls(f"{address}/good"), tmp_path)
    assert seen == []


def test_a_given_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(DataError, match=r"data folder .*/nowhere does not exist; give the folder that holds toy/"):
        locate(FILE, tmp_path / "nowhere")


def test_the_error_says_what_where_from_and_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv("QORNN_DATA", str(tmp_path / "env"))
    with pytest.raises(DataError) as caught:
        locate(FILE)
    message = str(caught.value)
    for part in ("Toy file toy.gz", str(tmp_path / "env"), str(cache_folder()), FILE.urls[0]):
        assert part in message
    for part in ("$QORNN_NO_DOWNLOAD is set", "--data-dir", "$QORNN_DATA"):
        assert part in message


def test_a_good_download_lands_in_the_cache_once(server):
    address, seen = server
    file = from_urls(f"{address}/good")
    path = locate(file)
    assert path == cache_folder() / "toy/toy.gz"
    assert path.read_bytes() == BODY
    assert locate(file) == path
    assert seen == ["/good"]
    assert list(path.parent.iterdir()) == [path]


def test_a_length_that_is_not_announced_is_no_obstacle(server):
    assert locate(from_urls(f"{server[0]}/unannounced")).read_bytes() == BODY


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("wrong", "sha256 is .*, not "),
        ("truncated", "stopped after 70000 of 200000 bytes"),
        ("missing", "404"),
    ],
)
def test_a_bad_download_leaves_no_file(server, path, reason):
    with pytest.raises(DataError, match=rf"Download failed \({server[0]}/{path}: .*{reason}.*--data-dir"):
        locate(from_urls(f"{server[0]}/{path}"))
    assert list((cache_folder() / "toy").iterdir()) == []


def test_the_next_mirror_is_tried(server):
    address, seen = server
    urls = [f"{address}/{path}" for path in ("missing", "wrong", "truncated", "good")]
    assert locate(from_urls(*urls)).read_bytes() == BODY
    assert seen == ["/missing", "/wrong", "/truncated", "/good"]


def test_offline_is_a_data_error(downloads):
    with pytest.raises(DataError, match=r"Download failed \(http://127.0.0.1:9/toy.gz: .*refused.*--data-dir"):
        locate(FILE)


def test_a_cache_that_cannot_be_written_is_a_data_error(server, tmp_path, monkeypatch):
    (tmp_path / "in-the-way").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "in-the-way"))
    with pytest.raises(DataError, match="in-the-way"):
        locate(from_urls(f"{server[0]}/good"))


def test_an_interrupted_download_leaves_no_file(server, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(data, "_copy", interrupt)
    with pytest.raises(KeyboardInterrupt):
        locate(from_urls(f"{server[0]}/good"))
    assert list((cache_folder() / "toy").iterdir()) == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_progress_is_shown_on_a_terminal_only(server, monkeypatch, capsys, stream, shown):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    locate(from_urls(f"{server[0]}/good"))
    assert ("download good" in stream.getvalue()) is shown
    assert bool(stream.getvalue()) is shown
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("switch", ["", "0"])
def test_downloads_are_off_only_when_the_switch_says_so(server, monkeypatch, switch):
    monkeypatch.setenv("QORNN_NO_DOWNLOAD", switch)
    assert locate(from_urls(f"{server[0]}/good")).is_file()


MNIST_NAMES = ["{0}-{1}-ubyte.gz", "{0}-{1}-ubyte", "{0}.{1}-ubyte", "{0}.{1}-ubyte.gz"]


@pytest.mark.parametrize("name", MNIST_NAMES)
@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw", "."])
def test_mnist_layouts(tmp_path, folder, name):
    path = put(tmp_path / folder / name.format("t10k-images", "idx3"))
    assert locate(mnist.FILES["test"][0], tmp_path) == path


@pytest.mark.parametrize("folder", ["ptb", "simple-examples/data", "."])
def test_ptb_layouts(tmp_path, folder):
    path = put(tmp_path / folder / "ptb.valid.txt")
    assert locate(ptb.FILES["validation"], tmp_path) == path


def check_digest(file, root):
    algorithm, _, digest = file.checksum.partition(":")
    assert hashlib.new(algorithm, Path(locate(file, root)).read_bytes()).hexdigest() == digest


def test_checksums_are_those_of_the_real_mnist(real_mnist):
    for file in (*mnist.FILES["train"], *mnist.FILES["test"]):
        check_digest(file, real_mnist)


def test_checksums_are_those_of_the_real_ptb(real_ptb):
    for file in ptb.FILES.values():
        check_digest(file, real_ptb)


@pytest.mark.parametrize("given", [True, False])
def test_the_home_of_an_unknown_user_is_a_folder_that_is_not_there(monkeypatch, given):
    monkeypatch.setenv("QORNN_DATA", "~no-such-user/data")
    with pytest.raises(DataError, match="~no-such-user/data"):
        locate(FILE, "~no-such-user/data" if given else None)


@pytest.mark.skipif(sys.platform == "win32", reason="homes are found otherwise there")
def test_a_user_without_a_home_is_told_which_folder_to_name(monkeypatch, tmp_path):
    def unknown(uid):
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME", "QORNN_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)  # as in a container that runs as a number
    with pytest.raises(DataError, match=r"no home folder.*XDG_CACHE_HOME.*QORNN_DATA"):
        locate(FILE)
    file = put(tmp_path / "toy" / "toy.gz")
    monkeypatch.setenv("QORNN_DATA", str(tmp_path))
    assert locate(FILE) == file


def test_a_download_removes_what_a_killed_one_left_and_is_readable_by_all(server):
    address, _ = server
    left = put(cache_folder() / "toy" / ".qornn-12-0123abcd-0.part")
    before = os.umask(0o022)
    try:
        path = locate(from_urls(f"{address}/good"))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    assert not left.exists()
