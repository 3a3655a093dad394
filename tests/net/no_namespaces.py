#!/usr/bin/python3
"""Starts a program where no namespace can be made: no_namespaces.py PROGRAM [ARGUMENTS]

A plain seccomp filter answers as a container's default profile does: unshare, setns and clone with any
namespace flag fail with EPERM, clone3 with ENOSYS (so that libraries fall back to clone). It needs
no rights and is inherited by everything that is started.
"""

import ctypes
import os
import platform
import struct
import sys

EPERM, ENOSYS = 1, 38
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
# NEWTIME is left out: in clone() its bit belongs to the exit signal.
NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
LOAD, EQUAL, ANY_BIT, ANSWER = 0x20, 0x15, 0x45, 0x06
# audit's architecture number, then clone, clone3, unshare, setns
NUMBERS = {"x86_64": (0xC000003E, 56, 435, 272, 308), "aarch64": (0xC00000B7, 220, 435, 97, 268)}


def program():
    machine, clone, clone3, unshare, setns = NUMBERS[platform.machine()]
    return [
        (LOAD, 0, 0, 4),                  # the architecture
        (EQUAL, 1, 0, machine),
        (ANSWER, 0, 0, ALLOW),
        (LOAD, 0, 0, 0),                  # the number
        (EQUAL, 5, 0, clone3),
        (EQUAL, 5, 0, unshare),
        (EQUAL, 4, 0, setns),
        (EQUAL, 0, 4, clone),
        (LOAD, 0, 0, 16),                 # clone's flags, low word (little endian)
        (ANY_BIT, 1, 2, NAMESPACES),
        (ANSWER, 0, 0, ERRNO | ENOSYS),
        (ANSWER, 0, 0, ERRNO | EPERM),
        (ANSWER, 0, 0, ALLOW),
    ]


def install():
    code = b"".join(struct.pack("HBBI", *line) for line in program())
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_ulong(value) for value in (1, 0, 0, 0)]
    if libc.prctl(PR_SET_NO_NEW_PRIVS, *arguments) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), header, *arguments[:2]) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    install()
    os.execvp(sys.argv[1], sys.argv[1:])
