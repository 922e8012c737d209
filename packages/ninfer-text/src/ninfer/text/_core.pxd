"""Owners of the grammar core's objects, shared with the matcher."""

from libc.stdint cimport uint32_t

from ninfer.text._tvm_ffi cimport TVMFFIAny, TVMFFIObjectHandle
from ninfer.text._xgrammar cimport MatcherMethods


cdef class TokenIndex:
    cdef TVMFFIAny handle
    cdef readonly int token_domain
    cdef readonly int mask_words
    cdef readonly tuple eos_ids
    cdef bytes class_bytes
    cdef bytes permitted_bytes
    # Borrowed from the two bytes objects above.
    cdef const unsigned char* classes
    cdef const uint32_t* permitted


cdef class CompiledGrammar:
    cdef TVMFFIAny handle
    cdef readonly TokenIndex index


cdef const MatcherMethods* matcher_methods() noexcept nogil
cdef int new_matcher(CompiledGrammar grammar, TVMFFIAny* matcher) except -1
cdef void release(TVMFFIAny* value) noexcept nogil
cdef TVMFFIObjectHandle take_error() noexcept nogil
cdef str error_text(TVMFFIObjectHandle error)
