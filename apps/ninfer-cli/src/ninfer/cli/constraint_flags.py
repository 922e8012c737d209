"""The constraint flags that ``run`` and ``check`` share; reads files, judges nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ninfer.cli.failure import InputError
from ninfer.contract import OutputConstraint

_PANEL = "Constraint (at most one kind)"

GrammarFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Hold the answer to a GBNF grammar whose entry rule is root.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
JsonSchemaFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Hold the answer to a JSON Schema document.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
JsonObject = Annotated[
    bool,
    typer.Option(
        "--json-object",
        help="Hold the answer to one JSON object.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Regex = Annotated[
    str | None,
    typer.Option(
        metavar="EXPRESSION",
        help="Hold the whole answer to a regular expression (ECMAScript subset).",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Choice = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="Hold the answer to one of the given strings; repeat the option.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]


class FlaggedConstraint(NamedTuple):
    """A constraint and the place the user gave it at."""

    flag: str
    constraint: OutputConstraint


def read_constraint(
    grammar_file: Path | None,
    json_schema_file: Path | None,
    json_object: bool,
    regex: str | None,
    choice: list[str] | None,
) -> FlaggedConstraint | None:
    """Return the one constraint the flags give, or None.

    Raises: InputError — two kinds are given, or a file cannot be read.
    """
    given = {
        "--grammar-file": grammar_file is not None,
        "--json-schema-file": json_schema_file is not None,
        "--json-object": json_object,
        "--regex": regex is not None,
        "--choice": bool(choice),
    }
    flags = [flag for flag, is_given in given.items() if is_given]
    if len(flags) > 1:
        raise InputError(f"{flags[0]} and {flags[1]}", "exclude each other", "conflicting_options")
    if grammar_file is not None:
        text = read_text("--grammar-file", grammar_file)
        place = f"--grammar-file {grammar_file}"
        return FlaggedConstraint(place, OutputConstraint.grammar(text))
    if json_schema_file is not None:
        text = read_text("--json-schema-file", json_schema_file)
        place = f"--json-schema-file {json_schema_file}"
        return FlaggedConstraint(place, OutputConstraint.json_schema(text))
    if json_object:
        return FlaggedConstraint("--json-object", OutputConstraint.json_object())
    if regex is not None:
        return FlaggedConstraint("--regex", OutputConstraint.regex(regex))
    if choice:
        return FlaggedConstraint("--choice", OutputConstraint.choice(choice))
    return None


def read_text(option: str, path: Path) -> str:
    """Return a file's text with its line ends as they are.

    Raises: InputError — the file cannot be read or is not UTF-8.
    """
    place = f"{option} {path}"
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(place, error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise InputError(place, f"byte {error.start} is not UTF-8") from None


def require_text(option: str, text: str) -> str:
    """Return ``text`` after checking that the shell passed whole UTF-8.

    Raises: InputError — a byte of the argument is not UTF-8.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(option, f"character {error.start} is not UTF-8") from None
    return text
