"""Bodies of requests: counted before they are read, refused in a sentence, and nothing malformed makes a traceback."""

import asyncio
import contextlib
import http.client
import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from gradio.utils import get_upload_folder

from playground.service.limits import (
    BODIES,
    BODIES_PER_ADDRESS,
    BODY_SPARE,
    BODY_TEXT,
    JSON_ESCAPES,
    KINDS,
    MULTIPART_SPARE,
    Limits,
)
from playground.service.models import Registry
from playground.service.uploads import Uploads
from playground.ui.api import Endpoints
from playground.ui.app import build_app
from playground.ui.bodies import bodies
from playground.ui.classroom import make
from playground.ui.forms import texts
from playground.ui.forms.followed import uploaded

from .panels import page_of
from .raw import RawCaller, serving, web
from .runs import ANNA, BERT, small_limits, until

CHUNK = 65_536
SMALL = small_limits(text_bytes=20_000, parameters=1_000)

# ---- an endless stream -----------------------------------------------------------------------------------------------


class Stream:
    """A client that sends these bytes again and again, for as long as somebody reads them."""

    def __init__(self, limits: Limits, piece: bytes, path: str, stated: int | None = None):
        self.limits, self.piece, self.path, self.stated = limits, piece, path, stated
        self.read = 0
        self.sent: list[dict] = []

    async def receive(self) -> dict:
        self.read += len(self.piece)
        assert self.read < 500_000_000, "nobody stops it"
        return {"type": "http.request", "body": self.piece, "more_body": True}

    async def send(self, message: dict) -> None:
        self.sent.append(message)

    async def reader(self, scope, receive, send) -> None:
        """An application that reads bodies as Starlette does."""
        chunks, more = [], True
        while more:
            message = await receive()
            chunks.append(message["body"])
            more = message["more_body"]

    def answer(self) -> tuple[int, str]:
        headers = [(b"content-length", b"%d" % self.stated)] if self.stated is not None else []
        headers.append((b"content-type", b"multipart/form-data; boundary=x" if "upload" in self.path else b"text/json"))
        scope = {"type": "http", "method": "POST", "path": self.path, "root_path": "", "headers": headers}
        middleware = bodies(self.limits, Uploads(self.limits), lambda request: ("10.0.0.1", ""))
        asyncio.run(middleware.cls(self.reader, **middleware.kwargs)(scope, self.receive, self.send))
        body = b"".join(message.get("body", b"") for message in self.sent).decode()
        return self.sent[0]["status"], body if "upload" in self.path else json.loads(body)["error"]


@pytest.mark.parametrize("path", ["call/train", "queue/join", "run/predict", "upload"])
@pytest.mark.parametrize("limits", [SMALL, *KINDS.values()], ids=["small", *KINDS])
def test_an_endless_body_is_refused_at_its_limit_and_one_that_states_it_is_not_read_at_all(limits, path):
    stream = Stream(limits, b"w" * CHUNK, f"/gradio_api/{path}")
    status, words = stream.answer()
    most, spare = JSON_ESCAPES * min(limits.text_bytes, BODY_TEXT), BODY_SPARE
    said = f"at most {most / JSON_ESCAPES / 1e6:.1f} MB"
    if path == "upload":
        most, spare, said = limits.file_bytes, MULTIPART_SPARE, f"{limits.archive_bytes / 1e6:.1f} MB"
    assert status == 413 and said in words and ("a part" in words.lower() or words.endswith("model."))
    assert stream.read <= most + spare + CHUNK
    stated = Stream(limits, b"w" * CHUNK, f"/gradio_api/{path}", stated=2_000_000_000)
    assert stated.answer()[0] == 413 and stated.read == 0


@pytest.mark.parametrize("addresses, bound", [(1, BODIES_PER_ADDRESS), (10, BODIES)])
def test_many_slow_bodies_take_a_bounded_part_of_memory_and_a_click_finds_its_room(addresses, bound):
    """60 clients of ten addresses each held a text of 8 MB: 500 MB, for as long as they liked."""

    async def attack() -> None:
        may_end, answers = asyncio.Event(), []

        async def done(scope, receive, send) -> None:
            await send({"type": "http.response.start", "status": 200})

        middleware = bodies(KINDS["local"], Uploads(KINDS["local"]), lambda request: (request.headers["origin"], ""))
        app = middleware.cls(done, **middleware.kwargs)

        async def asks(origin: int, chunks: int) -> None:
            left = chunks

            async def receive() -> dict:
                nonlocal left
                left -= 1
                if not left and chunks > 1:
                    await may_end.wait()
                return {"type": "http.request", "body": b"w" * CHUNK, "more_body": left > 0}

            async def send(message: dict) -> None:
                answers.extend([message["status"]] if "status" in message else [])

            headers = [(b"origin", b"%d" % origin)]
            scope = {"type": "http", "method": "POST", "path": "/gradio_api/call/train", "root_path": ""}
            await app({**scope, "headers": headers}, receive, send)

        mob = [asyncio.create_task(asks(number % addresses, 128)) for number in range(60)]
        while app.held.total() < bound - 128 * CHUNK or len(answers) < 60 - bound // (127 * CHUNK):
            await asyncio.sleep(0)
        assert app.held.total() <= bound and set(answers) == {413}
        await asks(0, 1)
        assert answers[-1] == 200
        may_end.set()
        await asyncio.gather(*mob)
        assert not app.held, "each answered body gives its room back"

    asyncio.run(attack())


@pytest.mark.parametrize("letter", ["\n", "é", "я", "漢", "🦊", '"'])
def test_a_text_of_the_limits_size_passes_however_it_is_escaped(letter):
    text = letter * (SMALL.text_bytes // len(letter.encode()))
    body = json.dumps({"data": [text, "s" * 900_000]}).encode()
    SMALL.check_body(len(body))


# ---- handlers --------------------------------------------------------------------------------------------------------


def test_the_text_of_a_program_or_a_class_is_measured_before_it_is_taken_apart(monkeypatch):
    monkeypatch.setattr(texts, "own_of", lambda *_: pytest.fail("a text beyond the limit was taken apart"))
    page, long = page_of(Registry(SMALL)), "word " * 10_000
    given = {"source": "text", "size": "tiny", "text": long, "steps": 0, "seed": 0}
    for measured in (lambda: Endpoints(page)._spec(long, "", "tiny", 0, "", {}), lambda: make.preset(given, page)):
        with pytest.raises(ValueError, match=r"Use.*part"):
            measured()
    page.limits = KINDS["local"]
    with pytest.raises(ValueError, match="200,000 characters"):
        make.preset({**given, "text": long * 10}, page)


def test_an_upload_that_was_deleted_is_named_without_its_place(tmp_path):
    values = {"source": "text", "own_kind": "upload", "upload": str(tmp_path / "tales.txt"), "text": ""}
    shown = texts.contents_html(values, SMALL)
    assert "tales.txt is" in shown and str(tmp_path) not in shown


# ---- a whole server --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The page under tight limits, and its address."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("uploads")))
    limits = small_limits(
        text_bytes=20_000,
        parameters=20_000,
        steps=20,
        upload_bytes=2_000_000,
        upload_bytes_per_address=800_000,
    )
    app = build_app(limits)
    with serving(app) as (_, address):
        yield app, address.rstrip("/")
    monkeypatch.undo()


def post(address: str, body: bytes | str, kind: str = "application/json", **headers: str) -> tuple[int, str]:
    """The status and the body of the answer to a POST."""
    named = {"content-type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
    answer = web("POST", address, content=body, headers=named)
    return answer.status_code, answer.text


HUGE, NESTED = 10**30, "[" * 300 + "]" * 300
MALFORMED = [
    "", "{", "null", "[]", "1", '"x"', "true", "{}", '{"data": null}', '{"data": "x"}', '{"data": 1}', '{"data": {}}',
    '{"data": [1]', '{"data": [1]}{"data": [1]}', "data=1&x=2", b"\xff\xfe\0", b"\0" * 10, "[" * 5000 + "]" * 5000,
    '{"data": [%s]}' % ("9" * 5000), '{"data": [], "session_hash": 1}', '{"data": [], "trigger_id": "x"}',
    '{"data": [], "event_id": [5]}',
    '{"data": [], "fn_index": "x"}', '{"data": [], "fn_index": 1.5}', '{"data": [], "batched": "maybe"}',
]  # fmt: skip
VALUES = [
    f"{HUGE}", f"-{HUGE}", f"[{HUGE}]", f'{{"a": {HUGE}}}', "NaN", "Infinity", "1e999", NESTED, '"\\u0000"',
    '"\\ud800"', '{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}',
]  # fmt: skip


def in_a_sentence(answer: str) -> bool:
    """Whether a refusal says something to whoever reads it."""
    told = json.loads(answer)
    words = told.get("error") or told.get("detail")
    return isinstance(words, str) and len(words.split()) >= 3


@pytest.mark.parametrize("path", ["call/models", "call/generate", "call/v2/generate", "queue/join", "run/predict"])
def test_malformed_bodies_are_refused_in_a_sentence(served, path, caplog):
    _, address = served
    for body in MALFORMED:
        status, answer = post(f"{address}/gradio_api/{path}", body)
        if status == 200:  # the fault is in a field that this route does not have
            told = web("GET", f"{address}/gradio_api/call/models/{json.loads(answer)['event_id']}").text
            assert "event: complete" in told or "went wrong. Reload the page" in told, (body, told)
            continue
        assert 400 <= status < 500 and in_a_sentence(answer), (body, status, answer)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("value", VALUES)
def test_values_that_cannot_be_sent_back_are_refused_by_every_handler(served, value, caplog, capfd):
    app, address = served
    handlers = [fn for fn in app.fns.values() if fn.fn and fn.inputs]
    assert len(handlers) > 10
    for fn in handlers[::4] + [fn for fn in handlers if "welcome" in str(fn.api_name)]:
        data = ", ".join([value] * len(fn.inputs))
        status, answer = post(
            f"{address}/gradio_api/run/predict", f'{{"data": [{data}], "fn_index": {fn._id}, "session_hash": "s"}}'
        )
        assert status == 200 or in_a_sentence(answer), (fn.api_name, status, answer)
        assert value not in (f"{HUGE}", NESTED, "NaN") or status != 200, fn.api_name
    assert "Traceback" not in "".join(capfd.readouterr())
    assert not [record for record in caplog.records if record.exc_info]


OF_A_FORM = ["source", "learn", "size", "own_kind", "text", "upload", "tokenizer", "steps", "equal", "prompt"]
OF_A_CLASS = ["code", "name", "secret", "title", "hours", "lesson", "source", "size", "steps", "seed", "changes"]


@pytest.mark.parametrize("value", VALUES)
def test_values_that_no_field_can_hold_are_refused_by_every_form_and_by_a_class(served, value, caplog):
    _, address = served

    def asked(path: str, names: list[str], form: str = "{%s}") -> tuple[int, str]:
        selection = form % ", ".join(f'"{name}": {value}' for name in names)
        return post(f"{address}/{path}", f'{{"visitor": "{ANNA}", "selection": {selection}}}')

    for name in ("train_form", "moe_form"):
        for doing in ('"pressed": true', '"causes": ["source", "text", "size", "reset", "preset", "fields"]'):
            status, answer = asked(f"do/{name}", OF_A_FORM, f'{{{doing}, "values": {{%s}}}}')
            assert status in (200, 400) and "Traceback" not in answer, (value, status, answer)
            assert "went wrong. Reload the page" in answer, (value, answer)
    for path in ("do/make_class", "do/join_class", "do/end_class", "do/leave_class", "view/class"):
        status, answer = asked(path, OF_A_CLASS)
        assert status in (200, 400) and "Traceback" not in answer, (path, value, status, answer)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    ("problem", "said"), [(RuntimeError("/a/secret"), "our side"), (OSError(28, "No space", "/a"), "again later")]
)
def test_an_error_of_a_handler_is_a_sentence_and_keeps_its_traceback(served, monkeypatch, caplog, problem, said):
    """An upload to a full disk was answered by a bare 500, a download by an error without a word."""
    app, address = served

    def broken(*_):
        raise problem

    caller = RawCaller(address)
    monkeypatch.setattr(app.fns[caller.endpoint("renew-models")["id"]], "fn", broken)
    status, answer = caller.call("renew-models")
    assert status == 500 and said in json.loads(answer)["error"] and "/a" not in answer and str(problem) in caplog.text
    monkeypatch.setattr("gradio.route_utils.GradioMultiPartParser.parse", broken)
    status, answer = post(f"{address}/gradio_api/upload", form(b"y" * 100), MULTIPART)
    assert "/a" not in answer and (said != "again later" or (status == 507 and answer.endswith("again later.")))


# ---- uploads ---------------------------------------------------------------------------------------------------------


def form(content: bytes, *, field: str = "files", name: str = "a.txt") -> bytes:
    head = f'--x\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
    return head.encode() + content + b"\r\n--x--\r\n"


MULTIPART = "multipart/form-data; boundary=x"


def lying() -> int:
    """Bytes of all files in the upload folder, from which some may be going right now."""
    found = 0
    for path in Path(get_upload_folder()).rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found += path.stat().st_size if path.is_file() else 0
    return found


def upload(address: str, content: bytes, visitor: str = "", **headers: str) -> tuple[int, str]:
    """The answer to an upload, which this visitor's page sends."""
    whose = {"x_playground_visitor": visitor} | headers
    return post(f"{address}/gradio_api/upload", form(content), MULTIPART, **whose)


def stored_at(answer: str) -> list[str]:
    """Where the files lie that an upload was answered the names of."""
    return [str(Path(get_upload_folder(), name)) for name in json.loads(answer)]


def taken_away(address: str, paths: list[str]) -> None:
    """Delete stored files, and wait until the server knows."""
    for path in paths:
        Path(path).unlink()
    until(lambda: counts(address)["files"] == 0)


def counts(address: str) -> dict[str, int]:
    return web("GET", f"{address}/status").json()["uploads"]


def test_uploads_have_a_total_for_each_address(served):
    _, address = served
    stored = []
    for n in range(6):
        status, answer = upload(address, b"%02d" % n + b"x" * 150_000, ANNA)
        stored += stored_at(answer) if status == 200 else []
    assert status == 413 and len(stored) == 5 and "at most 1 MB of uploads from one address" in answer
    assert lying() <= 800_000 and counts(address) == {"files": 5, "bytes": 5 * 150_002}
    taken_away(address, stored)
    status, answer = upload(address, b"y" * 150_000, ANNA)
    assert status == 200
    taken_away(address, stored_at(answer))


@pytest.mark.parametrize("invented", [{"visitor": "x" * 48}, {"x_forwarded_for": "203.0.113.{n}"}])
def test_neither_an_invented_visitor_nor_an_invented_address_has_a_share(served, invented):
    """A server at home believed X-Forwarded-For: its requests come from this machine, and uvicorn trusts those."""
    _, address = served
    stored = []
    for n in range(7):
        whose = {name: value.format(n=n) if "{" in value else value[:-1] + str(n) for name, value in invented.items()}
        status, answer = upload(address, b"%02d" % n + b"z" * 150_000, **whose)
        stored += stored_at(answer) if status == 200 else []
    assert status == 413 and len(stored) == 5 and "from one address" in answer
    taken_away(address, stored)


def test_an_upload_is_answered_by_a_name_that_says_nothing_of_the_server(served):
    """The answer was the file's whole path in the server's temporary folder."""
    _, address = served
    status, answer = upload(address, b"a tale", ANNA)
    (name,) = json.loads(answer)
    folder = Path(get_upload_folder())
    assert status == 200 and name.endswith("a.txt") and not Path(name).is_absolute() and folder.name not in answer
    with urllib.request.urlopen(f"{address}/gradio_api/file={name}", timeout=30) as back:
        assert back.read() == b"a tale" and str(folder) not in str(back.headers)
    assert uploaded({"path": name}) == str((folder / name).resolve())
    for odd in (7, None, "a\0b", str(folder), str(folder / ".." / ".." / "x")):
        assert uploaded({"path": odd}) is uploaded(odd) is None
    for wrong in ("../" + name, "/etc/passwd", f"{name}/../../../../../../etc/passwd", "", "."):
        assert uploaded({"path": wrong}) is None
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}/gradio_api/file={wrong}", timeout=30)
        assert str(folder) not in refused.value.read().decode()
    taken_away(address, stored_at(answer))


def test_what_a_visitor_has_sent_goes_with_their_data_unless_another_has_sent_it_too(served):
    app, address = served
    for visitor in (BERT, ANNA):
        _, answer = upload(address, b"the class's tale" * 100, visitor)
    (path,) = map(Path, stored_at(answer))
    for visitor in (ANNA, BERT):
        assert path.exists()
        asked = {"visitor": visitor, "selection": {}}
        assert post(f"{address}/do/forget_me", json.dumps(asked))[0] == 200
    assert not path.exists() and counts(address)["files"] == 0
    uploads = app.page.uploads
    uploads.end(uploads.begin("10.0.0.1", ANNA, 5), [str(path)])
    assert counts(address) == {"files": 0, "bytes": 0}, "gone before it was counted"


@pytest.mark.parametrize(
    "body",
    [
        form(b"x" * 150_000, field="others"),
        form(b"x" * 150_000, name=".."),
        form(b"x" * 150_000)[:-30],
        form(b"x" * 150_000, field="others") + b"--y",
        form(b"x" * 12_000_000),
    ],
    ids=["another field", "a name that is none", "cut off", "more behind its end", "too large"],
)
def test_what_an_odd_upload_has_written_is_not_left_behind(served, body):
    _, address = served
    before = lying()
    status, answer = post(f"{address}/gradio_api/upload", body, MULTIPART)
    assert len(body) < 10_000_000 or (status == 413 and "10.1 MB" in answer)
    for path in stored_at(answer) if status == 200 else []:
        Path(path).unlink()
    assert lying() == before


def test_an_upload_of_unknown_size_is_counted_as_it_comes(served):
    _, address = served
    host, before, body = address.removeprefix("http://"), lying(), form(b"x" * 3_000_000)
    with contextlib.closing(http.client.HTTPConnection(host, timeout=30)) as client:
        pieces = (body[at : at + CHUNK] for at in range(0, len(body), CHUNK))
        client.request("POST", "/gradio_api/upload", pieces, {"Content-Type": MULTIPART}, encode_chunked=True)
        answer = client.getresponse()
        assert answer.status == 413 and b"from one address" in answer.read()
    assert lying() == before


def test_an_upload_that_is_cut_off_leaves_nothing_and_frees_its_share(served):
    _, address = served
    host, before = address.removeprefix("http://"), lying()
    for _ in range(4):
        with contextlib.closing(http.client.HTTPConnection(host, timeout=30)) as client:
            client.putrequest("POST", "/gradio_api/upload")
            client.putheader("Content-Type", MULTIPART)
            client.putheader("Content-Length", "700000")
            client.endheaders(form(b"x" * 600_000)[:500_000])
            until(lambda: lying() > before)
        until(lambda: lying() == before)


@pytest.mark.parametrize("path", ["process_recording", "component_server", "call/train"])
def test_files_are_taken_at_one_place_alone(served, path):
    _, address = served
    status, answer = post(f"{address}/gradio_api/{path}", form(b"x" * 1000, field="video"), MULTIPART)
    assert status == 415 and in_a_sentence(answer)
