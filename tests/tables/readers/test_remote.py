"""Files in the net, read from servers on this machine."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onepass import load
from onepass.cli.main import main
from onepass.tables.inputs import ContentLog, Inputs
from onepass.tables.readers import remote
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.paths import expand, is_url
from onepass.tables.readers.registry import open_source
from onepass.tables.readers.remote import remote_fingerprint
from tests.helpers.tables import trips, write_csv, write_parquet
from tests.helpers.web_server import WebServer, serving

ROWS = trips(8_000)


def ids(url: str, skip: int = 0) -> list[int]:
    return [int(row["id"]) for batch in open_source(url).batches(None, skip) for row in batch.record_batch.to_pylist()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("files")
    csv = write_csv(folder / "a.csv", ROWS).read_bytes()
    parquet = write_parquet(folder / "a.parquet", ROWS).read_bytes()
    return {"b/d/a.csv": csv, "b/d/b.csv": csv, "b/d/a.csv.gz": gzip.compress(csv), "b/d/a.parquet": parquet}


@pytest.fixture
def server(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    for name, value in {
        "no_proxy": "127.0.0.1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "_PAUSES", (0.0, 0.0))
    with serving(dict(files)) as serving_them:
        yield serving_them


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_every_format_is_read_from_a_web_server(name: str, server: WebServer) -> None:
    url = server.url(f"b/d/{name}")
    assert expand([url]) == [url]
    for skip in (0, 4_321):
        assert ids(url, skip) == list(range(skip, len(ROWS)))
    assert remote_fingerprint(url) == {"name": name, "size": len(server.files[f"b/d/{name}"]), "digest": '"1"'}


def test_a_connection_that_breaks_is_opened_again_where_it_broke(server: WebServer) -> None:
    url = server.url("b/d/a.csv")
    source = open_source(url)
    server.break_after = 300_000
    assert sum(map(len, source.batches(None, 0))) == len(ROWS)
    assert server.asked[-1].startswith("GET b/d/a.csv bytes=")


def test_a_file_that_changes_while_it_is_read_is_an_error(server: WebServer) -> None:
    source = open_source(server.url("b/d/a.csv"))
    server.tag = "2"
    with pytest.raises(StreamError, match="has changed while it was read"):
        list(source.batches(None, 0))


def test_servers_that_refuse_are_told(server: WebServer) -> None:
    with pytest.raises(StreamError, match=r"none\.csv can't be read: the server answers 404 Not Found"):
        open_source(server.url("none.csv"))
    server.ranges = False
    assert len(ids(server.url("b/d/a.csv"))) == len(ROWS)
    with pytest.raises(
        StreamError, match="can't be read in parts, because its server sends only whole files; download it"
    ):
        open_source(server.url("b/d/a.parquet"))
    with pytest.raises(StreamError, match=r"http://127\.0\.0\.1:1/a can't be read: "):
        open_source("http://127.0.0.1:1/a")


def test_passwords_and_signatures_are_in_no_message(server: WebServer) -> None:
    with pytest.raises(StreamError) as caught:
        open_source(server.url("none.csv?signature=secret").replace("127", "user:secret@127", 1))
    assert "secret" not in str(caught.value)


def test_s3_is_read_and_listed(server: WebServer) -> None:
    for name in ("a.csv", "a.parquet"):
        url = server.s3(f"b/d/{name}")
        assert ids(url, 4_321) == list(range(4_321, len(ROWS)))
        assert remote_fingerprint(url) == {"name": name, "size": len(server.files[f"b/d/{name}"]), "digest": '"1"'}
    assert expand([server.s3("b/d/*.csv")]) == [server.s3("b/d/a.csv"), server.s3("b/d/b.csv")]
    with pytest.raises(StreamError, match=r"s3://b/d/\*\.json matches no file"):
        expand([server.s3("b/d/*.json")])
    with pytest.raises(StreamError, match=r"s3://b/d/none\.csv does not exist"):
        open_source(server.s3("b/d/none.csv"))


def test_other_schemes_are_those_of_fsspec(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    with fsspec.open("memory://d/a.parquet", "wb") as opened:
        opened.write(files["b/d/a.parquet"])
    assert ids("memory://d/a.parquet") == list(range(len(ROWS)))
    assert remote_fingerprint("memory://d/a.parquet")["size"] == len(files["b/d/a.parquet"])
    with pytest.raises(StreamError, match="nowhere://a can't be read: Protocol not known: nowhere"):
        open_source("nowhere://a")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(StreamError, match=r"memory://d/a.parquet needs fsspec: pip install 'onepass-learn\[remote\]'"):
        open_source("memory://d/a.parquet")


def test_addresses_of_this_machine_are_paths(tmp_path: Path) -> None:
    file = tmp_path / "a b.csv"
    file.write_text("a\n1\n")
    assert expand([f"file://{str(file).replace(' ', '%20')}"]) == [str(file)]
    assert not is_url(str(file))


def test_what_is_in_the_net_is_learned_and_predicted(server: WebServer, tmp_path: Path) -> None:
    model, out = tmp_path / "m", tmp_path / "p.csv"
    for arguments in (
        ["fit", server.url("b/d/a.csv"), "--target", "price", "--model", str(model), "-q"],
        ["predict", str(model), server.s3("b/d/*.csv"), "--out", str(out), "-q"],
    ):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0
    assert len(out.read_text().splitlines()) == 2 * len(ROWS) + 1


def test_a_file_in_the_net_is_learned_once_until_it_changes(
    server: WebServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, secret = tmp_path / "m", server.url("b/d/a.csv").replace("http://", "http://me:secret@") + "?signed=x"

    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        assert end.value.code == 0, told
        assert "secret" not in told.out + told.err
        return told.out + told.err

    run("fit", secret, "--target", "price", "--model", model)
    address = server.url("b/d/a.csv")
    assert f"8,000 rows, 0 rejected, from {address}\n" in run("history", model)
    assert f"{address} was learned on 20" in run("learn", model, server.url("b/d/a.csv"))
    assert "learned 8,000 rows" in run("learn", model, server.url("b/d/b.csv"))  # a version is that of one address
    server.tag = "2"
    told = run("learn", model, address, "--passes", "2")
    assert f"{address} has changed since it was learned on 20" in told
    assert "learned 16,000 rows" in told
    assert "is left out" in run("learn", model, address)
    assert load(model).n_rows == 32_000


def test_a_file_in_the_net_that_changes_during_a_run_is_an_error(server: WebServer, tmp_path: Path) -> None:
    url = server.url("b/d/a.csv")
    log = ContentLog(Inputs((url,)), [open_source(url)])
    with log.reading(0):
        server.tag = "2"
        with pytest.raises(StreamError, match="was changed while it was read"):
            log.end(8_000)
