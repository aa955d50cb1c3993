"""A process that holds NVRTC: reads requests, answers, and never imports the house or touches a GPU.

Run as a script inside `evo.sandbox` by `evaluators.nvrtc`, with the library's path as its argument. Every message is
a length (8 bytes, little-endian) and JSON.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import sys
from typing import Any, BinaryIO

_SUCCESS, _COMPILATION = 0, 6


class Nvrtc:
    """The few functions of libnvrtc that are needed, through ctypes (NVRTC manual, CUDA 13, section 5)."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def describe(self) -> dict[str, Any]:
        """Return the version and the architectures that it compiles for, as numbers."""
        major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._library.nvrtcGetSupportedArchs(numbers)
        return {"version": f"{major.value}.{minor.value}", "archs": list(numbers)}

    def compile(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compile one program; the answer holds `code`, `log`, `lowered` names and the `image` in base64."""
        headers = request["headers"]
        texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
        names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
        program = ctypes.c_void_p()
        source, name = request["source"].encode(), request["name"].encode()
        code = self._library.nvrtcCreateProgram(ctypes.byref(program), source, name, len(headers), texts, names)
        if code != _SUCCESS:
            return {"code": code, "log": self._error(code), "lowered": {}, "image": ""}
        try:
            return self._compile(program, request)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _compile(self, program: ctypes.c_void_p, request: dict[str, Any]) -> dict[str, Any]:
        for kernel in request["kernels"]:
            self._library.nvrtcAddNameExpression(program, kernel.encode())
        options = [option.encode() for option in request["options"]]
        code = self._library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = self._text(program, "ProgramLog").replace(b"\0", b"").decode(errors="replace")
        if code not in (_SUCCESS, _COMPILATION):
            log = f"{self._error(code)}\n{log}"
        image = self._text(program, request["image"]) if code == _SUCCESS else b""
        lowered = {kernel: self._lowered(program, kernel) for kernel in request["kernels"]} if code == _SUCCESS else {}
        return {"code": code, "log": log, "lowered": lowered, "image": base64.b64encode(image).decode()}

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        if getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) != _SUCCESS or not size.value:
            return b""
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    def _lowered(self, program: ctypes.c_void_p, kernel: str) -> str:
        name = ctypes.c_char_p()
        code = self._library.nvrtcGetLoweredName(program, kernel.encode(), ctypes.byref(name))
        return (name.value or b"").decode() if code == _SUCCESS else ""

    def _error(self, code: int) -> str:
        text: bytes = self._library.nvrtcGetErrorString(code)
        return text.decode()


def write(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write one message."""
    data = json.dumps(message).encode()
    stream.write(len(data).to_bytes(8, "little") + data)
    stream.flush()


def read(stream: BinaryIO) -> dict[str, Any] | None:
    """Read one message; None at the end of the stream."""
    head = _exactly(stream, 8)
    data = _exactly(stream, int.from_bytes(head, "little")) if head else b""
    message: dict[str, Any] | None = json.loads(data) if data else None
    return message


def _exactly(stream: BinaryIO, count: int) -> bytes:
    parts: list[bytes] = []
    while count and (part := stream.read(count)):
        parts.append(part)
        count -= len(part)
    return b"" if count else b"".join(parts)


def main() -> None:
    """Describe the library, or say why it cannot be loaded; then answer requests until stdin ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # nobody reads what the library may print there
    try:
        library = Nvrtc(sys.argv[1])
    except OSError as error:
        write(sys.stdout.buffer, {"error": str(error)})
        return
    write(sys.stdout.buffer, library.describe())
    while (request := read(sys.stdin.buffer)) is not None:
        write(sys.stdout.buffer, library.compile(request))


if __name__ == "__main__":
    main()
