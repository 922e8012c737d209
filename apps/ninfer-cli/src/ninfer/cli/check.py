"""``ninfer check``: what a constraint allows, or where it is refused; no model is loaded."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from ninfer.cli import constraint_flags as flags
from ninfer.cli.answer import print_json, print_line
from ninfer.cli.failure import InputError
from ninfer.cli.places import Places
from ninfer.cli.services import Invocation
from ninfer.contract import ConstraintKind, OutputConstraint, TextPosition, UnsupportedOption

_TOKEN_TERMINAL = re.compile(
    r"""(?>"(?:[^"\\\n]|\\.)*"|\[(?:[^\]\\\n]|\\.)*\]|\#[^\n]*|[^"\[\#])*?"""
    r"""\b((?:Exclude)?Token)(?=\s*\()"""
)
"""The first token terminal of a GBNF text, outside literals, classes and comments."""

_VISITS = 1500
_COUNTED_ANSWERS = 1000
_SHOWN_ANSWERS = 5


class Allowance(NamedTuple):
    """What a constraint allows; ``answer_count`` None means more than could be counted."""

    kind: ConstraintKind
    answer_count: int | None
    empty_answer: bool
    samples: tuple[str, ...]
    compiled_bytes: int
    prepare_seconds: float


def check(
    context: typer.Context,
    grammar_file: flags.GrammarFile = None,
    json_schema_file: flags.JsonSchemaFile = None,
    json_object: flags.JsonObject = False,
    regex: flags.Regex = None,
    choice: flags.Choice = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what a constraint allows, or refuse it with the place."""
    invocation: Invocation = context.obj
    invocation.as_json = json
    flagged = flags.read_constraint(grammar_file, json_schema_file, json_object, regex, choice)
    if flagged is None:
        raise InputError("check", "name one constraint, such as --choice TEXT")
    invocation.places = Places(flagged.flag)
    allowance = allowance_of(flagged.constraint)
    if json:
        print_json(_record(allowance))
        return
    for line in _lines(allowance):
        print_line(line)


def allowance_of(constraint: OutputConstraint) -> Allowance:
    """Return what a constraint allows.

    Raises: RequestError — the constraint is refused.
    """
    from ninfer.cli.exploration import BYTE_VOCABULARY, explore
    from ninfer.text.compiler import ConstraintCompiler

    compiler = ConstraintCompiler(BYTE_VOCABULARY)
    _refuse_token_terminals(constraint)
    compiled = compiler.compile(constraint)
    found = explore(lambda: compiler.matcher(compiled), visits=_VISITS, limit=_COUNTED_ANSWERS)
    count = len(found.answers) if found.exhausted else None
    if constraint.kind is ConstraintKind.CHOICE:
        count = len(set(constraint.literals))
    return Allowance(
        kind=constraint.kind,
        answer_count=count,
        empty_answer=compiler.matcher(compiled).can_end,
        samples=found.answers[:_SHOWN_ANSWERS],
        compiled_bytes=compiled.grammar.memory_bytes,
        prepare_seconds=compiled.prepare_seconds,
    )


def _refuse_token_terminals(constraint: OutputConstraint) -> None:
    # Judged over bytes their ids would mean something else, and no one would notice.
    found = _TOKEN_TERMINAL.match(constraint.source)
    if constraint.kind is ConstraintKind.GRAMMAR and found:
        fact = f"{found[1]} names ids of a model; check has none, run judges it"
        location = TextPosition.of_offset(constraint.source, found.start(1))
        raise UnsupportedOption(fact, location=location)


def _lines(allowance: Allowance) -> Iterator[str]:
    count = "not counted" if allowance.answer_count is None else str(allowance.answer_count)
    yield f"kind: {allowance.kind.value}"
    yield f"answers: {count}"
    yield f"empty answer: {'allowed' if allowance.empty_answer else 'not allowed'}"
    for sample in allowance.samples:
        yield f"for example: {jsonlib.dumps(sample, ensure_ascii=False)}"
    yield (
        f"compiled: {allowance.compiled_bytes} bytes in {allowance.prepare_seconds * 1e3:.1f} ms, "
        "over single bytes"
    )


def _record(allowance: Allowance) -> dict[str, Any]:
    return {
        "kind": allowance.kind.value,
        "answer_count": allowance.answer_count,
        "empty_answer": allowance.empty_answer,
        "samples": list(allowance.samples),
        "compiled_bytes": allowance.compiled_bytes,
        "prepare_seconds": allowance.prepare_seconds,
    }
