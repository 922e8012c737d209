# distutils: language = c++
"""Handles of the grammar core: loading, token index, compiler, compiled grammar.

Implements: ninfer/text/_core.pyi.
Assumes: the pinned xgrammar; ``load`` checks every signature before anything is called.
"""

import json
import sys

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc
from posix.dlfcn cimport RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym

from ninfer.text._tvm_ffi cimport (
    Ffi,
    TVMFFIAny,
    TVMFFIByteArray,
    TVMFFIErrorCell,
    TVMFFIFunctionCell,
    TVMFFIMethodInfo,
    TVMFFIObject,
    TVMFFIObjectHandle,
    TVMFFISafeCallType,
    TVMFFITypeInfo,
    kTVMFFIByteArrayPtr,
    kTVMFFIStaticObjectBegin,
)
from ninfer.text._xgrammar cimport (
    MatcherMethods,
    Method,
    boolean,
    integer,
    invoke,
    none,
    pointer,
)

from ninfer.contract.errors import IntegrityError
from ninfer.contract.vocabulary import TokenClass

cdef Ffi ffi
cdef MatcherMethods matcher_table
cdef Method new_array
cdef Method new_index
cdef Method new_compiler
cdef Method new_matcher_object
cdef Method compile_text
cdef Method grammar_bytes
cdef Method compiler_bytes
cdef bint loaded = False

# xgrammar's enumeration of piece encodings: bytes as they are.
cdef int RAW = 0


def load(str ffi_library, str core_library):
    global loaded
    if loaded:
        return
    find_functions(open_library(ffi_library))
    open_library(core_library)
    find_methods()
    loaded = True


cdef void* open_library(str path) except NULL:
    cdef bytes name = path.encode()
    cdef void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        raise ImportError(f"the grammar core cannot be loaded: {dlerror().decode()}", path=path)
    return library


cdef int find_functions(void* library) except -1:
    # dlsym's void* becomes a function pointer through its own address, as POSIX shows it.
    (<void**> &ffi.TVMFFITypeKeyToIndex)[0] = symbol(library, b"TVMFFITypeKeyToIndex")
    (<void**> &ffi.TVMFFIGetTypeInfo)[0] = symbol(library, b"TVMFFIGetTypeInfo")
    (<void**> &ffi.TVMFFIFunctionGetGlobal)[0] = symbol(library, b"TVMFFIFunctionGetGlobal")
    (<void**> &ffi.TVMFFIStringFromByteArray)[0] = symbol(library, b"TVMFFIStringFromByteArray")
    (<void**> &ffi.TVMFFIObjectDecRef)[0] = symbol(library, b"TVMFFIObjectDecRef")
    (<void**> &ffi.TVMFFIErrorMoveFromRaised)[0] = symbol(library, b"TVMFFIErrorMoveFromRaised")
    return 0


cdef void* symbol(void* library, bytes name) except NULL:
    cdef void* found = dlsym(library, name)
    if found == NULL:
        raise ImportError(f"libtvm_ffi does not export {name.decode()}")
    return found


cdef int find_methods() except -1:
    global new_array, new_index, new_compiler, new_matcher_object
    global compile_text, grammar_bytes, compiler_bytes
    cdef str index = "TokenizerInfo"
    cdef str compiler = "GrammarCompiler"
    cdef str grammar = "CompiledGrammar"
    cdef str matcher = "GrammarMatcher"
    new_array = global_function(b"ffi.Array")
    new_index = method(index, "__ffi_init__", "ffi.Array int Any Any bool -> ffi.Object")
    new_compiler = method(compiler, "__ffi_init__", "ffi.Object int bool int bool -> ffi.Object")
    compile_text = method(
        compiler, "compile_grammar_from_strings", "self ffi.String ffi.String -> ffi.Object"
    )
    compiler_bytes = method(compiler, "get_cache_size_bytes", "self -> int")
    grammar_bytes = method(grammar, "memory_size_bytes", "self -> int")
    new_matcher_object = method(
        matcher, "__ffi_init__", "ffi.Object Any bool int std::optional -> ffi.Object"
    )
    matcher_table.fill_next_token_bitmask = method(
        matcher, "fill_next_token_bitmask", "self Any int bool -> bool"
    )
    matcher_table.accept_token = method(matcher, "accept_token", "self int bool -> bool")
    matcher_table.accept_string = method(matcher, "accept_string", "self Any bool -> bool")
    matcher_table.rollback = method(matcher, "rollback", "self int -> None")
    matcher_table.is_completed = method(matcher, "is_completed", "self -> bool")
    return 0


cdef Method global_function(bytes name) except *:
    cdef TVMFFIByteArray key = byte_array(name)
    cdef Method found
    found.function = NULL
    if ffi.TVMFFIFunctionGetGlobal(&key, &found.function) != 0 or found.function == NULL:
        raise ImportError(f"libtvm_ffi has no function {name.decode()}")
    found.call = safe_call(found.function)
    return found


cdef Method method(str owner, str name, str signature) except *:
    cdef str type_key = f"xgrammar.tvm_ffi_binding.{owner}"
    cdef bytes key_bytes = type_key.encode()
    cdef TVMFFIByteArray key = byte_array(key_bytes)
    cdef int32_t type_index
    if ffi.TVMFFITypeKeyToIndex(&key, &type_index) != 0:
        release_error()
        raise ImportError(f"the grammar core has no type {type_key}")
    cdef const TVMFFITypeInfo* info = ffi.TVMFFIGetTypeInfo(type_index)
    cdef const TVMFFIMethodInfo* entry
    cdef Method found
    cdef int number
    for number in range(info.num_methods):
        entry = &info.methods[number]
        if text_of(entry.name) == name:
            declared = declared_signature(text_of(entry.metadata), type_key)
            if declared != signature:
                raise ImportError(
                    f"{owner}.{name} of the grammar core is {declared}, not {signature}"
                )
            found.function = <TVMFFIObjectHandle> entry.method.v_ptr
            found.call = safe_call(found.function)
            return found
    raise ImportError(f"the grammar core has no {owner}.{name}")


cdef str declared_signature(str metadata, str owner):
    arguments = json.loads(json.loads(metadata)["type_schema"])["named_args"]
    names = ["self" if p["type"] == owner else p["type"] for p in arguments["params"]]
    return " ".join([*names, "->", arguments["return"][0]["type"]])


cdef TVMFFISafeCallType safe_call(TVMFFIObjectHandle function) noexcept nogil:
    return (<TVMFFIFunctionCell*> ((<TVMFFIObject*> function) + 1)).safe_call


cdef TVMFFIByteArray byte_array(bytes text) noexcept:
    cdef TVMFFIByteArray array
    array.data = PyBytes_AS_STRING(text)
    array.size = PyBytes_GET_SIZE(text)
    return array


cdef str text_of(TVMFFIByteArray text):
    return text.data[:text.size].decode("utf-8", "replace")


cdef TVMFFIAny owned_string(bytes text) except *:
    cdef TVMFFIByteArray array = byte_array(text)
    cdef TVMFFIAny string = none()
    if ffi.TVMFFIStringFromByteArray(&array, &string) != 0:
        raise failure("a text cannot be handed over")
    return string


cdef void release(TVMFFIAny* value) noexcept nogil:
    if value.type_index >= kTVMFFIStaticObjectBegin and value.v_ptr != NULL:
        ffi.TVMFFIObjectDecRef(value.v_ptr)
    value[0] = none()


cdef TVMFFIObjectHandle take_error() noexcept nogil:
    cdef TVMFFIObjectHandle error = NULL
    ffi.TVMFFIErrorMoveFromRaised(&error)
    return error


cdef str error_text(TVMFFIObjectHandle error):
    if error == NULL:
        return "no reason given"
    cdef TVMFFIErrorCell* cell = <TVMFFIErrorCell*> ((<TVMFFIObject*> error) + 1)
    cdef str text = text_of(cell.message)
    ffi.TVMFFIObjectDecRef(error)
    return text


cdef int release_error() except -1:
    error_text(take_error())
    return 0


cdef object failure(str what):
    return IntegrityError(f"grammar core: {what}: {error_text(take_error())}")


cdef const MatcherMethods* matcher_methods() noexcept nogil:
    return &matcher_table


cdef int new_matcher(CompiledGrammar grammar, TVMFFIAny* matcher) except -1:
    # Stops come from the index; ends on EOS only; rollback is never limited; no temperature.
    cdef TVMFFIAny[5] args
    args[0] = grammar.handle
    args[1] = none()
    args[2] = boolean(False)
    args[3] = integer(-1)
    args[4] = none()
    if invoke(&new_matcher_object, args, 5, matcher) != 0:
        raise failure("no matcher")
    return 0


@cython.final
cdef class TokenIndex:
    def __cinit__(self):
        self.handle = none()

    def __init__(self, vocabulary):
        if not loaded:
            raise IntegrityError("the grammar core is not loaded")
        self.token_domain = vocabulary.token_domain
        self.mask_words = (self.token_domain + 31) // 32
        self.eos_ids = vocabulary.eos_ids
        self.class_bytes = vocabulary.classes
        self.classes = <const unsigned char*> PyBytes_AS_STRING(self.class_bytes)
        self.permitted_bytes = words_of(self.class_bytes, bytes([TokenClass.TEXT, TokenClass.EOS]))
        self.permitted = <const uint32_t*> PyBytes_AS_STRING(self.permitted_bytes)
        self.partial_bytes = partial_words(self.permitted_bytes)
        self.partial = <const int32_t*> PyBytes_AS_STRING(self.partial_bytes)
        self.partial_words = len(self.partial_bytes) // 4
        self.end_bytes = words_of(self.class_bytes, bytes([TokenClass.EOS]))
        self.ends = <const uint32_t*> PyBytes_AS_STRING(self.end_bytes)
        self.ends_from = min(self.eos_ids) // 32
        self.ends_to = max(self.eos_ids) // 32 + 1
        release(&self.handle)
        build_index(self, spellings(vocabulary.pieces, self.class_bytes))

    def __dealloc__(self):
        release(&self.handle)


cdef int build_index(TokenIndex index, list pieces) except -1:
    cdef TVMFFIAny[5] args
    cdef TVMFFIAny texts = array_of_bytes(pieces)
    cdef TVMFFIAny stops = none()
    cdef int code
    try:
        stops = array_of_integers(index.eos_ids)
        args[0] = texts
        args[1] = integer(RAW)
        args[2] = integer(index.token_domain)
        args[3] = stops
        args[4] = boolean(False)
        with nogil:
            code = invoke(&new_index, args, 5, &index.handle)
        if code != 0:
            raise failure("the vocabulary is refused")
    finally:
        release(&texts)
        release(&stops)
    return 0


cdef list spellings(tuple pieces, bytes classes):
    # An empty piece is impossible to the core: identity of special ids never becomes text.
    cdef int text = TokenClass.TEXT
    return [
        piece if kind == text else b"" for piece, kind in zip(pieces, classes, strict=True)
    ]


cdef bytes words_of(bytes classes, bytes kinds):
    # Little-endian words: bit i of word w is bit i % 8 of byte 4 * w + i // 8.
    cdef Py_ssize_t count = PyBytes_GET_SIZE(classes)
    cdef bytearray packed = bytearray(4 * ((count + 31) // 32))
    cdef unsigned char* bits = packed
    cdef const unsigned char* kind = classes
    cdef Py_ssize_t token
    for token in range(count):
        if kind[token] in kinds:
            bits[token >> 3] |= <unsigned char> (1 << (token & 7))
    return bytes(packed)


cdef bytes partial_words(bytes permitted):
    cdef const uint32_t* words = <const uint32_t*> PyBytes_AS_STRING(permitted)
    numbers = [n for n in range(len(permitted) // 4) if words[n] != 0xFFFFFFFF]
    return b"".join(n.to_bytes(4, sys.byteorder) for n in numbers)


cdef TVMFFIAny array_of_bytes(list pieces) except *:
    cdef Py_ssize_t count = len(pieces)
    cdef TVMFFIAny* views = <TVMFFIAny*> malloc(count * sizeof(TVMFFIAny))
    cdef TVMFFIByteArray* arrays = <TVMFFIByteArray*> malloc(count * sizeof(TVMFFIByteArray))
    cdef Py_ssize_t number
    try:
        if views == NULL or arrays == NULL:
            raise MemoryError
        for number in range(count):
            arrays[number] = byte_array(<bytes> pieces[number])
            views[number] = pointer(kTVMFFIByteArrayPtr, &arrays[number])
        return array_of(views, count)
    finally:
        free(views)
        free(arrays)


cdef TVMFFIAny array_of_integers(tuple numbers) except *:
    cdef Py_ssize_t count = len(numbers)
    cdef TVMFFIAny* views = <TVMFFIAny*> malloc(count * sizeof(TVMFFIAny))
    cdef Py_ssize_t number
    try:
        if views == NULL:
            raise MemoryError
        for number in range(count):
            views[number] = integer(numbers[number])
        return array_of(views, count)
    finally:
        free(views)


cdef TVMFFIAny array_of(const TVMFFIAny* views, Py_ssize_t count) except *:
    cdef TVMFFIAny array
    if invoke(&new_array, views, <int32_t> count, &array) != 0:
        raise failure("an array cannot be handed over")
    return array


@cython.final
cdef class Compiler:
    cdef TVMFFIAny handle
    cdef readonly TokenIndex index

    def __cinit__(self):
        self.handle = none()

    def __init__(self, TokenIndex index not None, int64_t cache_bytes):
        release(&self.handle)
        self.index = index
        cdef TVMFFIAny[5] args
        args[0] = index.handle
        args[1] = integer(1)
        args[2] = boolean(True)
        args[3] = integer(cache_bytes)
        args[4] = boolean(True)
        if invoke(&new_compiler, args, 5, &self.handle) != 0:
            raise failure("no compiler")

    def __dealloc__(self):
        release(&self.handle)

    @property
    def cache_bytes(self):
        cdef TVMFFIAny size
        if invoke(&compiler_bytes, &self.handle, 1, &size) != 0:
            raise failure("no cache size")
        return size.v_int64

    def compile(self, str ebnf not None):
        cdef CompiledGrammar grammar = CompiledGrammar.__new__(CompiledGrammar)
        cdef TVMFFIAny[3] args
        args[0] = self.handle
        args[1] = owned_string(ebnf.encode())
        args[2] = owned_string(b"root")
        cdef int code
        with nogil:
            code = invoke(&compile_text, args, 3, &grammar.handle)
            release(&args[1])
            release(&args[2])
        if code != 0:
            raise failure("the emitted grammar is refused")
        grammar.index = self.index
        return grammar


@cython.final
cdef class CompiledGrammar:
    def __cinit__(self):
        self.handle = none()

    def __dealloc__(self):
        release(&self.handle)

    @property
    def memory_bytes(self):
        cdef TVMFFIAny size
        if invoke(&grammar_bytes, &self.handle, 1, &size) != 0:
            raise failure("no memory size")
        return size.v_int64
