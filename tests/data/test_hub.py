"""Text from the Hub: the real loading code against the stand-in Hub on loopback."""

import pytest

from playground.data import TextError, read_hub

FILES = {"story.txt": b"Once upon a time there was a small server.\n" * 3, "picture.txt": b"\x89PNG\0\0"}


@pytest.mark.usefixtures("signed_in")
def test_a_text_is_fetched_once_and_never_where_it_is_too_large_or_with_this_machines_login(hub):
    # whoever names a repository must not learn by it whether a private one has such a file, or how large it is
    hub.add("anna/tales", FILES, kind="dataset")
    hub.add("anna/diary", FILES, kind="dataset", private=True)
    for file in ("story.txt", "missing.txt"):
        with pytest.raises(TextError, match="dataset anna/diary"):
            read_hub("anna/diary", file, endpoint=hub.address)
    with pytest.raises(TextError, match=r"MB.*used"):
        read_hub("anna/tales", "story.txt", endpoint=hub.address, max_bytes=10)
    assert not [line for line in hub.log if "/resolve/" in line]
    with pytest.raises(TextError, match=r"check.*connection"):
        read_hub("anna/tales", "story.txt", endpoint="http://127.0.0.1:9")
    assert read_hub("anna/tales", "story.txt", endpoint=hub.address) == FILES["story.txt"].decode()
    # a connection that is open outlives the server, so the second time another address is asked, where nobody listens
    assert read_hub("anna/tales", "story.txt", endpoint="http://127.0.0.1:9") == FILES["story.txt"].decode()


@pytest.mark.parametrize(
    ("repo", "file", "sentence"),
    [
        ("anna/tales", "missing.txt", r"missing\.txt.*anna/tales"),
        ("anna/nothing", "story.txt", "dataset anna/nothing"),
        ("anna/tales", "picture.txt", r"^picture\.txt.*anna/tales"),  # not where its copy lies here
        ("not a name!", "story.txt", "write.*user/name"),
        ("", "story.txt", "name.*repository"),
    ],
)
def test_what_cannot_be_fetched_is_a_sentence(hub, repo, file, sentence):
    hub.add("anna/tales", FILES, kind="dataset")
    with pytest.raises(TextError, match=sentence):
        read_hub(repo, file, endpoint=hub.address)
