"""Owners of the grammar core's objects, shared with the matcher."""

from libc.stdint cimport int32_t, uint32_t

from ninfer.text._tvm_ffi cimport TVMFFIAny, TVMFFIObjectHandle
from ninfer.text._xgrammar cimport MatcherMethods


cdef class TokenIndex:
    cdef TVMFFIAny handle
    cdef readonly int token_domain
    cdef readonly int mask_words
    cdef readonly tuple eos_ids
    cdef bytes class_bytes
    cdef bytes permitted_bytes
    cdef bytes end_bytes
    cdef bytes partial_bytes
    # Borrowed from the bytes objects above: class, mask of possible ids, the words of that mask
    # that are not all ones, mask of EOS ids.
    cdef const unsigned char* classes
    cdef const uint32_t* permitted
    cdef const int32_t* partial
    cdef int partial_words
    cdef const uint32_t* ends
    # Words that hold EOS ids: first, and one past the last.
    cdef int ends_from
    cdef int ends_to


cdef class CompiledGrammar:
    cdef TVMFFIAny handle
    cdef readonly TokenIndex index


cdef const MatcherMethods* matcher_methods() noexcept nogil
cdef int new_matcher(CompiledGrammar grammar, TVMFFIAny* matcher) except -1
cdef void release(TVMFFIAny* value) noexcept nogil
cdef TVMFFIObjectHandle take_error() noexcept nogil
cdef str error_text(TVMFFIObjectHandle error)
