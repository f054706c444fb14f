"""Numbers are formatted in one place."""

from playground.words.numbers import brief, bytes_text, estimate, percent, signed


def test_signs_are_minus_signs_nothing_has_none_and_counts_and_bytes_are_short():
    shares = {
        -0.02: "−2.0\u00a0%",
        -0.00001: "0.0\u00a0%",
        0.00001: "<0.1\u00a0%",
        0.9998: ">99.9\u00a0%",
        1.0: "100.0\u00a0%",
    }
    assert {share: percent(share) for share in shares} == shares
    assert [brief(x) for x in (-0.0, -1.25e-7, 3.0, -152.0)] == ["0", "−1.2e−07", "3", "−152"]
    assert (signed(-0.001), signed(0.5, 1, plus=True)) == ("0.00", "+0.5")
    assert [estimate(0.3553, 2.7836, 4), estimate(0.00214, 0.00045)] == ["0.4\u00a0±\u00a02.8", "0.00\u00a0±\u00a00.00"]
    assert [bytes_text(n) for n in (12, 1_500, 2e9)] == ["12 B", "1.5 kB", "2 GB"]
