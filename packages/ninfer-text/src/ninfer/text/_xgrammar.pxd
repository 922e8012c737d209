"""The methods of xgrammar's objects that are called, as typed calls without Python.

Every call returns 0, or the ABI's error code with the error left in the calling thread.
Source: xgrammar 0.2.9, type table of libxgrammar_bindings.so (third_party/xgrammar/ORIGIN.md).
"""

from libc.stdint cimport int32_t, int64_t

from ninfer.text._tvm_ffi cimport (
    DLTensor,
    TVMFFIAny,
    TVMFFIByteArray,
    TVMFFIObjectHandle,
    TVMFFISafeCallType,
    kTVMFFIBool,
    kTVMFFIByteArrayPtr,
    kTVMFFIDLTensorPtr,
    kTVMFFIInt,
    kTVMFFINone,
)


ctypedef struct Method:
    TVMFFIObjectHandle function
    TVMFFISafeCallType call


ctypedef struct MatcherMethods:
    Method fill_next_token_bitmask
    Method accept_token
    Method accept_string
    Method rollback
    Method is_completed


cdef inline TVMFFIAny none() noexcept nogil:
    cdef TVMFFIAny value
    value.type_index = kTVMFFINone
    value.zero_padding = 0
    value.v_int64 = 0
    return value


cdef inline TVMFFIAny integer(int64_t number) noexcept nogil:
    cdef TVMFFIAny value = none()
    value.type_index = kTVMFFIInt
    value.v_int64 = number
    return value


cdef inline TVMFFIAny boolean(bint truth) noexcept nogil:
    cdef TVMFFIAny value = none()
    value.type_index = kTVMFFIBool
    value.v_int64 = truth
    return value


cdef inline TVMFFIAny pointer(int32_t type_index, const void* target) noexcept nogil:
    cdef TVMFFIAny value = none()
    value.type_index = type_index
    value.v_ptr = <void*> target
    return value


cdef inline int invoke(
    const Method* method, const TVMFFIAny* args, int32_t count, TVMFFIAny* result
) noexcept nogil:
    result[0] = none()
    return method.call(method.function, args, count, result)


cdef inline int fill(
    const MatcherMethods* methods, TVMFFIAny matcher, DLTensor* row
) noexcept nogil:
    cdef TVMFFIAny result
    cdef TVMFFIAny[4] args
    args[0] = matcher
    args[1] = pointer(kTVMFFIDLTensorPtr, row)
    args[2] = integer(0)
    args[3] = boolean(False)
    return invoke(&methods.fill_next_token_bitmask, args, 4, &result)


cdef inline int accept(
    const MatcherMethods* methods, TVMFFIAny matcher, int64_t token, bint* taken
) noexcept nogil:
    cdef TVMFFIAny result
    cdef TVMFFIAny[3] args
    args[0] = matcher
    args[1] = integer(token)
    args[2] = boolean(False)
    cdef int code = invoke(&methods.accept_token, args, 3, &result)
    taken[0] = result.v_int64 != 0
    return code


cdef inline int accept_bytes(
    const MatcherMethods* methods, TVMFFIAny matcher, const TVMFFIByteArray* text, bint* taken
) noexcept nogil:
    cdef TVMFFIAny result
    cdef TVMFFIAny[3] args
    args[0] = matcher
    args[1] = pointer(kTVMFFIByteArrayPtr, text)
    args[2] = boolean(False)
    cdef int code = invoke(&methods.accept_string, args, 3, &result)
    taken[0] = result.v_int64 != 0
    return code


cdef inline int rollback(
    const MatcherMethods* methods, TVMFFIAny matcher, int64_t steps
) noexcept nogil:
    cdef TVMFFIAny result
    cdef TVMFFIAny[2] args
    args[0] = matcher
    args[1] = integer(steps)
    return invoke(&methods.rollback, args, 2, &result)


cdef inline int is_completed(
    const MatcherMethods* methods, TVMFFIAny matcher, bint* completed
) noexcept nogil:
    cdef TVMFFIAny result
    cdef TVMFFIAny[1] args
    args[0] = matcher
    cdef int code = invoke(&methods.is_completed, args, 1, &result)
    completed[0] = result.v_int64 != 0
    return code
