"""What is used of tvm-ffi's stable C ABI: types only, its functions are found at run time.

Source: tvm/ffi/c_api.h and dlpack/dlpack.h of apache-tvm-ffi.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "dlpack/dlpack.h" nogil:
    ctypedef enum DLDeviceType:
        kDLCPU

    ctypedef enum DLDataTypeCode:
        kDLInt

    ctypedef struct DLDevice:
        DLDeviceType device_type
        int32_t device_id

    ctypedef struct DLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    ctypedef struct DLTensor:
        void* data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset


cdef extern from "tvm/ffi/c_api.h" nogil:
    int32_t kTVMFFINone
    int32_t kTVMFFIInt
    int32_t kTVMFFIBool
    int32_t kTVMFFIDLTensorPtr
    int32_t kTVMFFIByteArrayPtr
    int32_t kTVMFFIStaticObjectBegin

    ctypedef void* TVMFFIObjectHandle

    ctypedef struct TVMFFIObject:
        pass

    ctypedef struct TVMFFIAny:
        int32_t type_index
        uint32_t zero_padding
        int64_t v_int64
        void* v_ptr
        TVMFFIObject* v_obj

    ctypedef struct TVMFFIByteArray:
        const char* data
        size_t size

    ctypedef struct TVMFFIErrorCell:
        TVMFFIByteArray kind
        TVMFFIByteArray message

    ctypedef int (*TVMFFISafeCallType)(
        void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result
    ) noexcept nogil

    ctypedef struct TVMFFIFunctionCell:
        TVMFFISafeCallType safe_call

    ctypedef struct TVMFFIMethodInfo:
        TVMFFIByteArray name
        TVMFFIByteArray metadata
        TVMFFIAny method

    ctypedef struct TVMFFITypeInfo:
        int32_t num_methods
        const TVMFFIMethodInfo* methods


ctypedef struct Ffi:
    # The functions of libtvm_ffi that this project calls, under their own names.
    int (*TVMFFITypeKeyToIndex)(const TVMFFIByteArray* key, int32_t* index) noexcept nogil
    const TVMFFITypeInfo* (*TVMFFIGetTypeInfo)(int32_t index) noexcept nogil
    int (*TVMFFIFunctionGetGlobal)(
        const TVMFFIByteArray* name, TVMFFIObjectHandle* function
    ) noexcept nogil
    int (*TVMFFIStringFromByteArray)(const TVMFFIByteArray* text, TVMFFIAny* string) noexcept nogil
    int (*TVMFFIObjectDecRef)(TVMFFIObjectHandle object) noexcept nogil
    void (*TVMFFIErrorMoveFromRaised)(TVMFFIObjectHandle* error) noexcept nogil
