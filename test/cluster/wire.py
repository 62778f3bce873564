"""The protocol of src/wire written a second time, for tests that speak to real daemons what no command of ours would say.

`Token` seals whatever facts a test wants under whatever key; `Wire` is one connection that frames, counts and authenticates; `pb` and `fields`
write and read protobuf. Numbers of calls come from tables/rpc.def.
"""
import ctypes
import ctypes.util
import hashlib
import os
import re
import socket
import struct
import time

from conftest import ROOT

SODIUM = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
HEAD = struct.Struct(">4sBBHIHHII16s")
CALL, REPLY, ERROR = 1, 2, 3
AUTH, PROTOCOL, TOO_LARGE, NOT_SUPPORTED, DENIED, CRED = 1007, 1011, 1012, 1013, 2002, 2060


def rpc_table():
    """{name: (number, who, limit in bytes)}"""
    with open(os.path.join(ROOT, "tables", "rpc.def")) as f:
        rows = re.findall(r"^RPC\((\w+), (\d+), \w+, \w+, (\w+), (\d+)\)", f.read(), re.M)
    return {name: (int(number), who, int(kib) * 1024) for name, number, who, kib in rows}


RPC = rpc_table()


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def pb(message):
    """{field: int, str, bytes, dict or a list of these} as protobuf."""
    out = b""
    for number, value in message.items():
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, int):
                out += varint(number << 3) + varint(int(v))
                continue
            data = pb(v) if isinstance(v, dict) else v.encode() if isinstance(v, str) else v
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def fields(data):
    """{field: [values]}; numbers as they are, the rest as bytes."""
    at, out = 0, {}

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n
    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            value = number()
        elif tag & 7 == 2:
            size = number()
            value = data[at:at + size]
            at += size
        else:
            size = {1: 8, 5: 4}[tag & 7]
            value = data[at:at + size]
            at += size
        out.setdefault(tag >> 3, []).append(value)
    return out


def key_of(path):
    with open(path, "rb") as f:
        return hashlib.blake2b(f.read(), digest_size=32, key=b"berth cluster key").digest()


class Token:
    """Who asks, as we please. Times are seconds from now."""
    def __init__(self, key, cluster, uid=0, gid=0, issued=0, expires=60, bound=bytes(32)):
        now = time.time()
        self.session = os.urandom(32)
        name = cluster.encode()
        plain = struct.pack(">IIQQ", uid, gid, int((now + issued) * 1000), int((now + expires) * 1000))
        plain += b"\1" + os.urandom(16) + self.session + bound + bytes([len(name)]) + name
        nonce, sealed, size = os.urandom(24), ctypes.create_string_buffer(len(plain) + 16), ctypes.c_ulonglong()
        SODIUM.crypto_aead_xchacha20poly1305_ietf_encrypt(sealed, ctypes.byref(size), plain, ctypes.c_ulonglong(len(plain)), b"\1", ctypes.c_ulonglong(1), None, nonce, key)
        self.data = b"\1" + nonce + sealed.raw


class Wire:
    """One connection. A token of None: nobody asks."""
    def __init__(self, where, token=None, limit=10):
        self.sock = socket.create_connection(where, timeout=limit)
        self.token, self.session = (token.data, token.session) if token else (b"", None)
        self.sent = self.seq = 0

    def frame(self, rpc, body=b"", head=None):
        """The bytes of the next frame; `head`: fields of the head that are to be wrong."""
        self.seq += 1
        f = dict(magic=b"BRTH", version=1, kind=CALL, rpc=RPC[rpc][0] if isinstance(rpc, str) else rpc, seq=self.seq, token=len(self.token), to=0, body=len(body), code=0)
        f.update(head or {})
        start = HEAD.pack(*f.values(), bytes(16))[:24]
        mac = ctypes.create_string_buffer(16)
        if self.session:
            key = hashlib.blake2b(b"frame\0\0\0" + struct.pack(">Q", self.sent), digest_size=32, key=self.session).digest()
            text = start + self.token + body
            SODIUM.crypto_onetimeauth(mac, text, ctypes.c_ulonglong(len(text)), key)
        self.sent += 1
        data = start + mac.raw + self.token + body
        self.token = b""
        return data

    def send(self, data):
        self.sock.sendall(data)

    def take(self, size):
        data = b""
        while len(data) < size:
            more = self.sock.recv(min(size - len(data), 1 << 20))
            if not more:
                return None
            data += more
        return data

    def answer(self):
        """(code, body): code 0 and the reply, the code and text of an error, or (None, b"") where the daemon hung up."""
        try:
            raw = self.take(HEAD.size)
            if not raw:
                return None, b""
            magic, _, kind, _, _, _, _, size, code, _ = HEAD.unpack(raw)
            assert magic == b"BRTH" and kind in (REPLY, ERROR), raw
            return (code if kind == ERROR else 0), self.take(size) if size else b""
        except ConnectionError:
            return None, b""

    def call(self, rpc, message=None, head=None):
        self.send(self.frame(rpc, message if isinstance(message, bytes) else pb(message or {}), head))
        return self.answer()

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
