"""Every error of NInfer, and the only roots there are.

    NInferError
    ├─ RequestError                 the caller can fix it; raised before the queue
    │  ├─ InvalidGrammar            line and column
    │  ├─ InvalidRegex              offset in the expression
    │  ├─ InvalidChoice             index of the literal
    │  ├─ InvalidSchema             not JSON, not a schema, or a number would be rounded
    │  ├─ UnsupportedSchema         legal but outside the contract, stated limits included
    │  ├─ UnsatisfiableConstraint   nothing can be generated
    │  ├─ InvalidTokenReference     a token id that no visible text may use
    │  ├─ InvalidToolConstraint     tools, tool choice or their combination
    │  ├─ InvalidContinuation       the final assistant message cannot be continued
    │  ├─ ConflictingOptions        two options, both named
    │  ├─ InvalidOption             one option is out of its range
    │  ├─ UnsupportedOption         legal, but this build or model does not have it
    │  ├─ InvalidPrompt             messages, template or token ids
    │  ├─ ContextLengthExceeded     the prompt does not fit
    │  ├─ ThinkingBudgetCapacity    the output limit leaves no room behind the thinking budget
    │  └─ RequestCancelled          cancelled while it was still being prepared
    ├─ AdmissionError               the caller may try again
    │  ├─ Overloaded                every outstanding slot is taken
    │  └─ QueueTimeout              the pending deadline passed
    ├─ ConstraintDeadEnd            one row met an empty set on the path really taken
    ├─ ModelError                   model files that cannot be found, read or served
    │  └─ DrafterError              the same of a drafter's files
    ├─ EngineUnavailable            stopped, draining, or poisoned by an IntegrityError
    └─ IntegrityError               our bug or broken numbers; never dressed as a user error
       ├─ RollbackFailed · PendingPreview · RowMismatch
       └─ NonFiniteLogits · InvalidMask · DeviceFailure

Cancellation and length are finish reasons, not exceptions. Messages read ``where: fact``.
"""

from __future__ import annotations

from typing import ClassVar

from ninfer.contract.constraint import ConstraintKind
from ninfer.contract.location import CONTENT, Location, Origin


class NInferError(Exception):
    """The root; ``code`` is stable and machine-readable."""

    code: ClassVar[str] = "internal_error"


class RequestError(NInferError):
    """The caller can fix it; raised before anything is queued.

    ``fact`` is the sentence without its place, ``location`` the place, ``origin`` whose text it is.
    ``detail`` is for the log only.
    """

    code: ClassVar[str] = "invalid_request"

    def __init__(
        self,
        fact: str,
        *,
        location: Location | None = None,
        origin: Origin = CONTENT,
        detail: str | None = None,
    ) -> None:
        super().__init__(fact)
        self.fact = fact
        self.location = location
        self.origin = origin
        self.detail = detail

    def __str__(self) -> str:
        place = "" if self.location is None else str(self.location)
        if self.origin.tool is not None:
            place = f"{self.origin}{place and ' '}{place}"
        return f"{place}: {self.fact}" if place else self.fact


class InvalidGrammar(RequestError):
    """A GBNF text that cannot be read."""

    code = "invalid_grammar"


class InvalidRegex(RequestError):
    """A regular expression outside the supported syntax."""

    code = "invalid_regex"


class InvalidChoice(RequestError):
    """A choice list that is empty or holds a string that is not Unicode text."""

    code = "invalid_choice"


class InvalidSchema(RequestError):
    """Text that is not JSON, not a schema, or whose numbers would be rounded."""

    code = "invalid_json_schema"


class UnsupportedSchema(RequestError):
    """A legal schema outside the contract; ``keyword`` is the assertion or the limit's name."""

    code = "unsupported_json_schema"

    def __init__(
        self,
        fact: str,
        *,
        keyword: str,
        location: Location | None = None,
        origin: Origin = CONTENT,
        detail: str | None = None,
    ) -> None:
        super().__init__(fact, location=location, origin=origin, detail=detail)
        self.keyword = keyword


class UnsatisfiableConstraint(RequestError):
    """A constraint that no finite text satisfies."""

    def __init__(
        self,
        fact: str,
        *,
        kind: ConstraintKind,
        location: Location | None = None,
        origin: Origin = CONTENT,
        detail: str | None = None,
    ) -> None:
        super().__init__(fact, location=location, origin=origin, detail=detail)
        self.kind = kind

    @property
    def code(self) -> str:  # type: ignore[override]
        """Return the code, which keeps the protocol's own word for schemas."""
        if self.kind is ConstraintKind.JSON_SCHEMA:
            return "unsatisfiable_json_schema"
        return "unsatisfiable_constraint"


class InvalidTokenReference(RequestError):
    """A token terminal names an id that visible text may not use."""

    code = "invalid_grammar"


CONSTRAINT_ERRORS: tuple[type[RequestError], ...] = (
    InvalidGrammar,
    InvalidRegex,
    InvalidChoice,
    InvalidSchema,
    UnsupportedSchema,
    UnsatisfiableConstraint,
    InvalidTokenReference,
)
"""The errors that are about the text of a constraint, and whose places lie inside it."""


class InvalidToolConstraint(RequestError):
    """Tool declarations, the tool choice, or their combination with other options."""

    code = "invalid_tool_constraint"


class InvalidContinuation(RequestError):
    """The final assistant message cannot be continued as asked."""

    code = "invalid_continuation"


class ConflictingOptions(RequestError):
    """Two options exclude each other; both are named."""

    code = "conflicting_options"

    def __init__(self, first: str, second: str, fact: str = "exclude each other") -> None:
        super().__init__(f"{first} and {second}: {fact}")
        self.options = (first, second)


class InvalidOption(RequestError):
    """One option is out of its range."""

    code = "invalid_option"


class UnsupportedOption(RequestError):
    """A legal option that this build or this model does not have."""

    code = "unsupported_option"


class InvalidPrompt(RequestError):
    """Messages that the template refuses, or token ids outside the domain."""

    code = "invalid_prompt"


class ContextLengthExceeded(RequestError):
    """The prompt leaves no room in the context window."""

    code = "context_length_exceeded"


class ThinkingBudgetCapacity(RequestError):
    """The output limit leaves no room for closing the thinking and one token of answer."""

    code = "thinking_budget_capacity_insufficient"


class RequestCancelled(RequestError):
    """The request was cancelled while it was still being prepared."""

    code = "cancelled"


class AdmissionError(NInferError):
    """The engine cannot take the request now; trying again may work."""


class Overloaded(AdmissionError):
    """Every outstanding slot is taken."""

    code = "server_overloaded"


class QueueTimeout(AdmissionError):
    """The pending deadline passed before the request was admitted."""

    code = "request_queue_timeout"


class ConstraintDeadEnd(NInferError):
    """One row met an empty set on the path really taken; the other rows went on."""

    code = "constraint_dead_end"


class ModelError(NInferError):
    """Model files that cannot be found, read or served; the message names file and field."""

    code = "model_error"


class DrafterError(ModelError):
    """A drafter's files that cannot be found, read or used with the model."""

    code = "drafter_error"


class EngineUnavailable(NInferError):
    """The engine is stopped, draining, or poisoned by an IntegrityError."""

    code = "service_unavailable"


class IntegrityError(NInferError):
    """Our bug or broken numbers; never dressed as a user error."""

    code = "integrity_error"


class RollbackFailed(IntegrityError):
    """A matcher did not return to its mark."""


class PendingPreview(IntegrityError):
    """An unresolved preview exists where none may."""


class RowMismatch(IntegrityError):
    """Decisions, previews or commits name other rows than the pending batch."""


class NonFiniteLogits(IntegrityError):
    """The best logit of a row is NaN or infinite."""


class InvalidMask(IntegrityError):
    """A mask whose shape, bits or position metadata contradict the contract."""


class DeviceFailure(IntegrityError):
    """Device work could not be completed."""
