# distutils: language = c++
"""The transaction around the native loop: marks, previews, batches, errors.

Implements: ninfer/text/_matcher.pyi.
Assumes: xgrammar's ``rollback(n)`` undoes exactly the last n accepted tokens.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLong
from cpython.number cimport PyNumber_Index
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from ninfer.text._core cimport (
    CompiledGrammar,
    TokenIndex,
    error_text,
    matcher_methods,
    new_matcher,
    release,
    take_error,
)
from ninfer.text._scan cimport (
    ACCEPT_FAILED,
    DONE,
    EOS,
    FILL_FAILED,
    MASK_DISAGREES,
    MAX_DRAFTS,
    Row,
    now,
    scan,
)
from ninfer.text._tvm_ffi cimport TVMFFIAny, TVMFFIByteArray
from ninfer.text._xgrammar cimport accept, accept_bytes, is_completed, none, rollback

from ninfer.contract.errors import (
    IntegrityError,
    InvalidMask,
    PendingPreview,
    RollbackFailed,
    RowMismatch,
)
from ninfer.contract.mask import DRAFT_LIMIT as _DRAFT_LIMIT
from ninfer.contract.mask import Lookahead
from ninfer.contract.vocabulary import TokenClass

assert MAX_DRAFTS == _DRAFT_LIMIT and EOS == TokenClass.EOS


cdef extern from "_rows.h" namespace "ninfer" nogil:
    void for_each_row(Row* rows, long count, int threads, void (*scan)(Row*) noexcept nogil)


@cython.final
cdef class Matcher:
    cdef TVMFFIAny handle
    cdef readonly CompiledGrammar grammar
    cdef TokenIndex index
    cdef bint busy
    cdef bint broken
    cdef bint previewed
    cdef bint ended
    cdef int64_t preview_tokens
    cdef readonly int64_t mask_positions
    cdef int64_t mask_nanoseconds
    cdef int64_t matcher_nanoseconds

    def __cinit__(self):
        self.handle = none()
        self.broken = True

    def __init__(self, CompiledGrammar grammar not None):
        if grammar.index is None:
            raise IntegrityError("matcher: the grammar was not compiled")
        release(&self.handle)
        new_matcher(grammar, &self.handle)
        self.grammar = grammar
        self.index = grammar.index
        self.broken = False

    def __dealloc__(self):
        release(&self.handle)

    @property
    def token_domain(self):
        return self.index.token_domain

    @property
    def mask_words(self):
        return self.index.mask_words

    @property
    def mask_seconds(self):
        return self.mask_nanoseconds * 1e-9

    @property
    def matcher_seconds(self):
        return self.matcher_nanoseconds * 1e-9

    @property
    def terminated(self):
        return self.ended

    @property
    def can_end(self):
        cdef bint completed = False
        self.require_sound()
        if self.ended:
            return True
        if is_completed(matcher_methods(), self.handle, &completed) != 0:
            raise IntegrityError(f"grammar core: no completion: {error_text(take_error())}")
        return completed

    def lookahead(self, drafts, masks):
        cdef Row row
        cdef Py_buffer view
        self.require_settled()
        self.describe(&row, drafts)
        row.masks = borrow(&view, masks, 2)
        self.busy = True
        try:
            require_shape(view.shape, row.drafts, row.words)
            with nogil:
                scan(&row)
        finally:
            self.busy = False
            PyBuffer_Release(&view)
        return self.settle(&row)

    def preview(self, tokens):
        cdef Py_ssize_t count = len(tokens)
        cdef int64_t* ids = NULL
        cdef int code
        self.require_settled()
        ids = <int64_t*> malloc((count + 1) * sizeof(int64_t))
        if ids == NULL:
            raise MemoryError
        try:
            for number in range(count):
                ids[number] = token_id(tokens[number])
            self.busy = True
            with nogil:
                code = self.advance(ids, count)
        finally:
            self.busy = False
            free(ids)
        self.previewed = True
        if code != 0:
            reason = error_text(take_error())
            self.discard()
            self.broken = True
            raise IntegrityError(f"grammar core: a token cannot be tried: {reason}")
        return self.preview_tokens

    def commit(self):
        self.previewed = False
        self.preview_tokens = 0

    def discard(self):
        cdef int64_t start = now()
        self.require_sound()
        if self.preview_tokens > 0:
            if rollback(matcher_methods(), self.handle, self.preview_tokens) != 0:
                self.broken = True
                raise RollbackFailed(f"grammar core: {error_text(take_error())}")
            self.ended = False
        self.previewed = False
        self.preview_tokens = 0
        self.matcher_nanoseconds += now() - start

    def feed(self, bytes text not None):
        cdef int64_t start = now()
        cdef Py_ssize_t taken
        self.require_settled()
        if self.ended or not text:
            return 0
        taken = self.take(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        if taken == 0:
            # The core takes a string whole or not at all; its legal start goes byte by byte.
            while self.take(PyBytes_AS_STRING(text) + taken, 1) == 1:
                taken += 1
        self.matcher_nanoseconds += now() - start
        return taken

    cdef Py_ssize_t take(self, const char* text, size_t byte_count) except -1:
        cdef TVMFFIByteArray array
        cdef bint taken = False
        array.data = text
        array.size = byte_count
        if accept_bytes(matcher_methods(), self.handle, &array, &taken) != 0:
            self.broken = True
            raise IntegrityError(f"grammar core: a text cannot be fed: {error_text(take_error())}")
        return byte_count if taken else 0

    cdef int advance(self, const int64_t* ids, Py_ssize_t count) noexcept nogil:
        cdef int64_t start = now()
        cdef const unsigned char* classes = self.index.classes
        cdef bint taken = False
        cdef int code = 0
        cdef Py_ssize_t number
        for number in range(count):
            if self.ended or not self.is_token(ids[number]):
                break
            if classes[ids[number]] == EOS:
                code = is_completed(matcher_methods(), self.handle, &taken)
                if code != 0 or not taken:
                    break
            code = accept(matcher_methods(), self.handle, ids[number], &taken)
            if code != 0 or not taken:
                break
            self.preview_tokens += 1
            self.ended = classes[ids[number]] == EOS
        self.matcher_nanoseconds += now() - start
        return code

    cdef bint is_token(self, int64_t token) noexcept nogil:
        if token < 0 or token >= self.index.token_domain:
            return False
        return self.index.permitted[token >> 5] >> (token & 31) & 1

    cdef int describe(self, Row* row, drafts) except -1:
        cdef Py_ssize_t count = len(drafts)
        cdef Py_ssize_t number
        if count > MAX_DRAFTS:
            raise InvalidMask(f"{count} drafts in one row, at most {MAX_DRAFTS}")
        for number in range(count):
            row.draft[number] = token_id(drafts[number])
        row.drafts = <int> count
        row.matcher = self.handle
        row.permitted = self.index.permitted
        row.partial = self.index.partial
        row.partial_words = self.index.partial_words
        row.ends = self.index.ends
        row.ends_from = self.index.ends_from
        row.ends_to = self.index.ends_to
        row.classes = self.index.classes
        row.token_domain = self.index.token_domain
        row.words = self.index.mask_words
        row.ended = self.ended
        row.reachable = 0
        row.filled = 0
        row.dead_ends = 0
        row.outcome = DONE
        row.error = NULL
        row.mask_nanoseconds = 0
        row.matcher_nanoseconds = 0
        return 0

    cdef object settle(self, Row* row):
        self.mask_positions += row.filled
        self.mask_nanoseconds += row.mask_nanoseconds
        self.matcher_nanoseconds += row.matcher_nanoseconds
        if row.outcome != DONE:
            self.raise_outcome(row)
        return Lookahead(row.drafts + 1, row.reachable, row.dead_ends, row.filled)

    cdef int raise_outcome(self, Row* row) except -1:
        reason = error_text(row.error)
        if row.outcome == MASK_DISAGREES:
            raise IntegrityError("grammar core: a token its own mask allows is refused")
        if row.outcome == FILL_FAILED:
            raise IntegrityError(f"grammar core: a mask cannot be filled: {reason}")
        self.broken = True
        if row.outcome == ACCEPT_FAILED:
            raise IntegrityError(f"grammar core: a token cannot be tried: {reason}")
        raise RollbackFailed(f"grammar core: {reason}")

    cdef int require_sound(self) except -1:
        if self.busy:
            raise IntegrityError("matcher: in use by another row or thread")
        if self.broken:
            raise RollbackFailed("matcher: an earlier call did not return to its mark")
        return 0

    cdef int require_settled(self) except -1:
        self.require_sound()
        if self.previewed:
            raise PendingPreview("matcher: an unresolved preview exists")
        return 0


cdef inline int64_t token_id(item) except? -1:
    # A float is not an id, which a plain C conversion would let pass.
    return PyLong_AsLongLong(item if type(item) is int else PyNumber_Index(item))


cdef uint32_t* borrow(Py_buffer* view, masks, int axes) except NULL:
    PyObject_GetBuffer(masks, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)
    cdef bytes layout = b"B" if view.format == NULL else view.format
    if view.ndim != axes or view.itemsize != 4 or layout.lstrip(b"@=<") != b"i":
        PyBuffer_Release(view)
        raise InvalidMask(f"masks are not int32 with {axes} axes")
    return <uint32_t*> view.buf


cdef int require_shape(const Py_ssize_t* shape, int drafts, int64_t words) except -1:
    if shape[0] <= drafts or shape[1] != words:
        raise InvalidMask(
            f"masks of {shape[0]} positions and {shape[1]} words; "
            f"{drafts} drafts need {drafts + 1} positions of {words}"
        )
    return 0


def lookahead_batch(matchers, drafts, masks, int threads=1):
    cdef Py_buffer view
    if len(matchers) != len(drafts):
        raise RowMismatch(f"{len(matchers)} matchers but {len(drafts)} rows of drafts")
    if threads < 1:
        raise ValueError(f"threads: {threads} is below 1")
    borrow(&view, masks, 3)
    try:
        if view.shape[0] < len(matchers):
            raise InvalidMask(f"masks of {view.shape[0]} rows for {len(matchers)} matchers")
        return scan_batch(list(matchers), drafts, &view, threads)
    finally:
        PyBuffer_Release(&view)


cdef list scan_batch(list matchers, drafts, Py_buffer* view, int threads):
    cdef Row* rows = <Row*> malloc((len(matchers) + 1) * sizeof(Row))
    cdef list entered = []
    cdef Matcher matcher
    cdef Row* row
    cdef Py_ssize_t number, count
    if rows == NULL:
        raise MemoryError
    try:
        for number in range(len(matchers)):
            if matchers[number] is None:
                continue
            matcher = matchers[number]
            row = &rows[len(entered)]
            matcher.require_settled()
            matcher.describe(row, drafts[number])
            require_shape(view.shape + 1, row.drafts, row.words)
            row.masks = <uint32_t*> view.buf + number * view.shape[1] * view.shape[2]
            entered.append(matcher)
            matcher.busy = True
        count = len(entered)
        with nogil:
            for_each_row(rows, count, threads, scan)
        return settle_batch(matchers, rows)
    finally:
        for matcher in entered:
            matcher.busy = False
        free(rows)


cdef list settle_batch(list matchers, Row* rows):
    # Every row is settled before the first failure is told.
    cdef list found = []
    cdef Py_ssize_t settled = 0
    failure = None
    for matcher in matchers:
        if matcher is None:
            found.append(None)
            continue
        try:
            found.append((<Matcher> matcher).settle(&rows[settled]))
        except IntegrityError as error:
            failure = failure or error
        settled += 1
    if failure is not None:
        raise failure
    return found
