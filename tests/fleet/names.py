"""A name server that answers what Kubernetes would for a headless service and its pods."""

import socket
import struct
import threading

_HEADER = struct.Struct(">HHHHHH")
_ADDRESS_RECORD = 1
_ANSWER = 0x8580  # authoritative, recursion as asked for
_UNKNOWN_NAME = 3


class Names:
    """`addresses`: name → IPv4 addresses; may be changed at any time."""

    def __init__(self, addresses):
        self.addresses = addresses
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def _serve(self):
        while True:
            try:
                query, asker = self._socket.recvfrom(4096)
                self._socket.sendto(self._reply(query), asker)
            except OSError:
                return  # closed

    def _reply(self, query):
        number = _HEADER.unpack_from(query)[0]
        labels, at = [], _HEADER.size
        while size := query[at]:
            labels.append(query[at + 1 : at + 1 + size].decode().lower())
            at += size + 1
        question = query[_HEADER.size : at + 5]
        kind = struct.unpack_from(">H", query, at + 1)[0]
        known = self.addresses.get(".".join(labels))
        found = known if known and kind == _ADDRESS_RECORD else []
        flags = _ANSWER if known else _ANSWER | _UNKNOWN_NAME
        # Each answer points to the name in the question.
        answers = b"".join(
            struct.pack(">HHHIH", 0xC00C, _ADDRESS_RECORD, 1, 5, 4) + socket.inet_aton(address)
            for address in found)
        return _HEADER.pack(number, flags, 1, len(found), 0, 0) + question + answers
