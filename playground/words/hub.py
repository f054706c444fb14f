"""What a person should know and do about a failed exchange with the Hub."""

from __future__ import annotations

from ..storage.hub import ExchangeError, Problem

_REFUSED = (
    "the Hub does not accept this login: sign in again (on this machine: hf auth login; or renew HF_TOKEN, which takes "
    "precedence)"
)
_SENTENCES = {
    Problem.BAD_NAME: "{0!r} is not a repository's name: write it as user/name, with letters, digits, - _ and .",
    Problem.BAD_TOKEN: "the stored token cannot be one, it holds spaces or other signs: sign in again",
    Problem.BUSY: "the Hub asks for patience, there were too many requests: try again in a few minutes",
    Problem.CONFLICT: "{0} is being changed by someone else right now: try again in a moment",
    Problem.FILE_MISSING: "{0} lacks a file that it should have: look at its Files page",
    Problem.FORBIDDEN: "this login may not do that to {0}: use a name of your own account, and a token that may write "
    "(on the Hub: Settings, Access Tokens)",
    Problem.GATED: "{0} is gated: open its page on the Hub, accept its terms, and try again with that account's login",
    Problem.INVALID_CARD: "the Hub does not accept the card's front matter, which is our mistake: please report it",
    Problem.LOGIN_REFUSED: _REFUSED,
    Problem.NO_LOGIN: "nobody is signed in to the Hub: run hf auth login on this machine, or set the variable HF_TOKEN",
    Problem.NO_SUCH_REPOSITORY: "there is no {0} on the Hub, {private}; check the spelling",
    Problem.NO_SUCH_REVISION: "{0} has no such revision: check its name on the repository's History page",
    Problem.PAYMENT_NEEDED: "the Hub asks for a payment method or a subscription for {0}: choose free hardware, or add "
    "one",
    Problem.REFUSED: "the Hub refused to handle {0} (it answered {status})",
    Problem.SERVER_TROUBLE: "the Hub has trouble at the moment (it answered {status}): try again later",
    Problem.UNREACHABLE: "the Hub cannot be reached: check the connection, and that HF_HUB_OFFLINE is not set",
}


def explain(problem: ValueError) -> str:
    """The sentence of an ExchangeError; any other ValueError speaks for itself."""
    if not isinstance(problem, ExchangeError):
        return str(problem)
    private = (
        "or it is private and this login may not see it" if problem.signed_in else "or it is private: sign in first"
    )
    return _SENTENCES[problem.kind].format(problem.subject, status=problem.status, private=private)
