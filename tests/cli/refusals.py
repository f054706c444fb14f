"""What the shell refuses: exit code 2, and one line that says what is wrong."""

from playground.cli import main


def check_refused(capsys, arguments: list, sentence: str) -> None:
    """Run a command that must end so; `sentence` is a part of the line."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as leaving:
        code = leaving.code
    said = capsys.readouterr().err
    assert code == 2 and sentence in said and len(said.strip().splitlines()) == 1, said
