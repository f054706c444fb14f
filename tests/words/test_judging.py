"""What is said of a written text is what was counted in it."""

from playground.data import LANGUAGES, corpus_from_sentences
from playground.data.judging import LearnedText, Share, judge
from playground.words.judging import compared_summary, copied_summary, parsed_summary, share_text


def test_shares_come_with_their_interval():
    assert share_text(Share(6, 13)) == "6 of 13 (23 to 71 %)"
    assert share_text(Share(13, 13)) == "13 of 13 (77 to 100 %)" and share_text(Share(0, 13)) == "0 of 13 (0 to 23 %)"


def test_a_parsed_text_says_what_is_right_and_what_is_wrong_first():
    said = parsed_summary(judge(LANGUAGES["addition"], "1+2=3\n4+4=9\n5+5=1"))
    assert said.startswith("Sums right: 1 of 2 (9 to 91 %). The first mistake, “9”: the sum is 8")
    assert parsed_summary(judge(LANGUAGES["addition"], "1+")) == "No whole sum yet."
    strange = parsed_summary(judge(LANGUAGES["stories"], " lived by the sea. She is happy.\nMax lived", "M�a"))
    assert strange == "Its first story is not judged: it holds letters that the language does not have."
    slip = parsed_summary(judge(LANGUAGES["addition"], "46\n1+1=2\n", "12++34="))
    assert "first sum is not judged: what it goes on from has a mistake" in slip


def test_a_compared_text_says_what_is_known_and_what_is_copied():
    rule = "the old keeper sees the small lamp by the sea and "
    learned = LearnedText(rule * 20, rule * 3 + "nothing of this was ever there before, not one of these words")
    said = compared_summary(learned.compare(rule + "x" * len(rule)))
    assert said.startswith("Words that occur in the text learned: 11 of 11")
    assert said.endswith("50 % is copied word for word, 30 characters or more in a row; of held-out text 71 %.")
    sentences = corpus_from_sentences().learned()
    assert copied_summary(sentences.compare(" sees the dog. the", begun="the cat")) == (
        "Its one whole sentence stands in the text learned as it is."
    )
