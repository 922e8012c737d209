"""One row's lookahead as native code: no Python object, no interpreter lock, no allocation.

Implements: the loop of specification 8.1.
Assumes: ``ends`` holds every EOS id of the domain, ``permitted`` every id that may ever occur.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from ninfer.text._core cimport matcher_methods, take_error
from ninfer.text._tvm_ffi cimport DLTensor, TVMFFIAny, TVMFFIObjectHandle, kDLCPU, kDLInt
from ninfer.text._xgrammar cimport MatcherMethods, accept, fill, is_completed, rollback


cdef enum:
    MAX_DRAFTS = 63
    EOS = 2


ctypedef enum Outcome:
    DONE
    FILL_FAILED
    ACCEPT_FAILED
    MASK_DISAGREES
    ROLLBACK_FAILED


ctypedef struct Row:
    # One matcher's share of a round: inputs, then what the loop found.
    TVMFFIAny matcher
    const uint32_t* permitted
    const int32_t* partial
    int partial_words
    const uint32_t* ends
    int ends_from
    int ends_to
    const unsigned char* classes
    int64_t token_domain
    int64_t words
    bint ended
    int drafts
    int64_t[MAX_DRAFTS] draft
    uint32_t* masks
    int reachable
    int filled
    uint64_t dead_ends
    Outcome outcome
    TVMFFIObjectHandle error
    int64_t mask_nanoseconds
    int64_t matcher_nanoseconds


cdef inline int64_t now() noexcept nogil:
    cdef timespec clock
    clock_gettime(CLOCK_MONOTONIC, &clock)
    return <int64_t> clock.tv_sec * 1000000000 + clock.tv_nsec


cdef inline void scan(Row* row) noexcept nogil:
    cdef const MatcherMethods* methods = matcher_methods()
    cdef int64_t start = now()
    cdef int steps = 0 if row.ended else walk(methods, row)
    cdef int position
    for position in range(row.reachable, row.drafts + 1):
        hold_place(row, position)
    if steps > 0 and rollback(methods, row.matcher, steps) != 0:
        fail(row, ROLLBACK_FAILED)
    row.matcher_nanoseconds = now() - start - row.mask_nanoseconds


cdef inline int walk(const MatcherMethods* methods, Row* row) noexcept nogil:
    # Returns the tokens taken, which the caller gives back.
    cdef int position
    cdef int64_t token
    cdef bint taken = False
    for position in range(row.drafts + 1):
        if not fill_position(methods, row, position):
            return position
        row.reachable = position + 1
        if row.dead_ends != 0 or position == row.drafts:
            return position
        token = row.draft[position]
        if not allows(row, position, token):
            return position
        if accept(methods, row.matcher, token, &taken) != 0:
            fail(row, ACCEPT_FAILED)
            return position
        if not taken:
            row.outcome = MASK_DISAGREES
            return position
        if row.classes[token] == EOS:
            return position + 1
    return row.drafts


cdef inline bint fill_position(
    const MatcherMethods* methods, Row* row, int position
) noexcept nogil:
    cdef int64_t start = now()
    cdef uint32_t* words = row.masks + position * row.words
    cdef int64_t stride = 1
    cdef DLTensor tensor
    tensor.data = words
    tensor.device.device_type = kDLCPU
    tensor.device.device_id = 0
    tensor.ndim = 1
    tensor.dtype.code = kDLInt
    tensor.dtype.bits = 32
    tensor.dtype.lanes = 1
    tensor.shape = &row.words
    tensor.strides = &stride
    tensor.byte_offset = 0
    if fill(methods, row.matcher, &tensor) != 0:
        fail(row, FILL_FAILED)
        return False
    if not close_early_ends(methods, row, words):
        return False
    restrict(row, words)
    if not any_bit(words, row.words):
        row.dead_ends |= (<uint64_t> 1) << position
        hold_place(row, position)
    row.filled += 1
    row.mask_nanoseconds += now() - start
    return True


cdef inline bint close_early_ends(
    const MatcherMethods* methods, Row* row, uint32_t* words
) noexcept nogil:
    # After an excluded-token terminal the core offers, and takes, EOS inside the language.
    cdef uint32_t offered = 0
    cdef bint completed = False
    cdef int number
    for number in range(row.ends_from, row.ends_to):
        offered |= words[number] & row.ends[number]
    if offered == 0:
        return True
    if is_completed(methods, row.matcher, &completed) != 0:
        fail(row, FILL_FAILED)
        return False
    if not completed:
        for number in range(row.ends_from, row.ends_to):
            words[number] &= ~row.ends[number]
    return True


cdef inline void restrict(const Row* row, uint32_t* words) noexcept nogil:
    # Control ids and the bits at and above V stay out whatever the core offers.
    cdef int entry
    for entry in range(row.partial_words):
        words[row.partial[entry]] &= row.permitted[row.partial[entry]]


cdef inline bint any_bit(const uint32_t* words, int64_t count) noexcept nogil:
    # Blocks keep the compiler's vector loop; most masks have a bit in the first one.
    cdef uint32_t bits = 0
    cdef int64_t start = 0
    cdef int64_t number
    while start + 64 <= count:
        for number in range(start, start + 64):
            bits |= words[number]
        if bits != 0:
            return True
        start += 64
    for number in range(start, count):
        bits |= words[number]
    return bits != 0


cdef inline void hold_place(Row* row, int position) noexcept nogil:
    cdef uint32_t* words = row.masks + position * row.words
    memset(words, 0, row.words * sizeof(uint32_t))
    words[0] = 1


cdef inline bint allows(const Row* row, int position, int64_t token) noexcept nogil:
    if token < 0 or token >= row.token_domain:
        return False
    return row.masks[position * row.words + (token >> 5)] >> (token & 31) & 1


cdef inline void fail(Row* row, Outcome outcome) noexcept nogil:
    # The error of an earlier failure is the one worth telling.
    cdef TVMFFIObjectHandle error = take_error()
    if row.error == NULL:
        row.error = error
    row.outcome = outcome
