"""A model's own chat template, run in a sandbox."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

import jinja2
import jinja2.ext
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ninfer.contract import InvalidPrompt, ModelError

_FILE_NAME = "<chat template>"


class ChatTemplate:
    """Renders conversations; the source is the checkpoint's.

    Effects: none; templates cannot reach Python objects or change what they are given.
    Raises:  ModelError — the source is not a template, with its line.
    """

    __slots__ = ("_globals", "_template", "source")

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        self.source = source
        self._globals = {"bos_token": bos_token, "eos_token": eos_token}
        environment = _environment()
        try:
            code = environment.compile(source, filename=_FILE_NAME)
        except jinja2.TemplateSyntaxError as error:
            raise ModelError(f"chat template line {error.lineno}: {error.message}") from error
        self._template = jinja2.Template.from_code(environment, code, environment.make_globals({}))

    def mentions(self, name: str) -> bool:
        """Return whether the source uses a name at all."""
        return name in self.source

    def render(self, variables: Mapping[str, Any]) -> str:
        """Return the rendered prompt.

        Raises: InvalidPrompt — the template refuses the conversation or fails on it; the message
                names the template's line.
        """
        try:
            return self._template.render({**self._globals, **variables})
        except Exception as error:
            # A template may fail in any way that expressions over the caller's data can fail.
            raise InvalidPrompt(f"chat template line {_line_of(error)}: {error}") from error


class _Generation(jinja2.ext.Extension):
    """Renders ``{% generation %}``, which only marks text for training, as its body."""

    tags: set[str] = {"generation"}  # noqa: RUF012 — declared so by the base class

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, _Generation]
    )
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    environment.filters["tojson"] = _to_json
    return environment


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateRuntimeError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _line_of(error: BaseException) -> int:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == _FILE_NAME
    ]
    return lines[-1] if lines and lines[-1] is not None else 1
