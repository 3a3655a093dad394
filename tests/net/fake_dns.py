#!/usr/bin/python3
"""A DNS server that says what a test tells it to.

    fake_dns.py --zone zone.json --log questions.ndjson [--listen 127.0.0.1] [--port 0]

Prints "ready PORT" when it listens (UDP and TCP). The zone is read again for every question, so a
test may rewrite it at any time. It maps names (lower case, no trailing dot) to what is said:

    {"example.com": {"A": ["93.184.216.34"], "AAAA": ["2606:2800::1"], "ttl": 60},
     "alias.test":  {"CNAME": "example.com"},                 followed inside the zone
     "loop.test":   {"CNAME": "loop.test"},                   a chain without an end
     "flip.test":   {"A": [["93.184.216.34"], ["127.0.0.1"]]},  one list a question, the last stays
     "text.test":   {"TXT": ["hello"]},
     "hints.test":  {"HTTPS": {"ipv4hint": ["10.0.0.1"], "ipv6hint": []}},
     "slow.test":   {"A": [...], "delay": 1.5},               seconds
     "cut.test":    {"A": [...], "truncate": true},           over UDP only
     "silent.test": {"drop": true},
     "broken.test": {"rcode": 2},                             SERVFAIL; also after "fail": N times
     "forged.test": {"A": [...], "forge": ["6.6.6.6"]},       wrong ids and names first
     "mad.test":    {"raw": "garbage in hexadecimal"},
     "*":           {...}}                                    every other name; absent: NXDOMAIN

Each question is one line of the log: {"name", "type", "transport", "from"}.
"""

import argparse
import ipaddress
import json
import socket
import socketserver
import struct
import sys
import threading
import time

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "TXT": 16, "AAAA": 28, "HTTPS": 65}
NAMES = {number: name for name, number in TYPES.items()}
CHAIN_MAX = 8


def pack_name(name):
    packed = b""
    for label in name.split(".") if name else []:
        packed += bytes([len(label)]) + label.encode("latin-1")
    return packed + b"\0"


def read_question(message):
    """(id, flags, question bytes, name, type) of a message with one uncompressed question."""
    number, flags, questions = struct.unpack("!HHH", message[:6])
    if questions != 1:
        raise ValueError("not one question")
    at, labels = 12, []
    while message[at]:
        length = message[at]
        if length > 63:
            raise ValueError("compressed question")
        labels.append(message[at + 1 : at + 1 + length].decode("latin-1"))
        at += length + 1
    kind = struct.unpack("!H", message[at + 1 : at + 3])[0]
    return number, flags, message[12 : at + 5], ".".join(labels).lower(), kind


def record(name, kind, ttl, data):
    return pack_name(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


class Zone:
    def __init__(self, path, log):
        self.path = path
        self.log = log
        self.counts = {}
        self.lock = threading.Lock()

    def entry(self, name):
        with open(self.path, encoding="utf-8") as file:
            zone = json.load(file)
        return zone.get(name, zone.get("*"))

    def note(self, name, kind, transport, peer):
        line = {"name": name, "type": NAMES.get(kind, f"TYPE{kind}"), "transport": transport,
                "from": peer}
        with self.lock, open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def count(self, name, kind):
        with self.lock:
            self.counts[name, kind] = self.counts.get((name, kind), 0) + 1
            return self.counts[name, kind]

    def data(self, entry, kind, count):
        values = entry.get(NAMES.get(kind, ""), [])
        if kind in (1, 28):
            if values and isinstance(values[0], list):
                values = values[min(count, len(values)) - 1]
            return [ipaddress.ip_address(value).packed for value in values]
        if kind == 16:
            return [bytes([len(value)]) + value.encode() for value in values]
        if kind == 12:
            return [pack_name(value) for value in values]
        if kind == 65 and values:
            data = struct.pack("!H", 1) + b"\0"
            for key, hint in ((4, "ipv4hint"), (6, "ipv6hint")):
                packed = b"".join(ipaddress.ip_address(a).packed for a in values.get(hint, []))
                if packed:
                    data += struct.pack("!HH", key, len(packed)) + packed
            return [data]
        return []

    def records(self, name, kind):
        """(rcode, records) with the CNAME chain followed."""
        result = []
        for _ in range(CHAIN_MAX):
            entry = self.entry(name)
            if entry is None:
                return (3, result)
            ttl = entry.get("ttl", 60)
            if "CNAME" in entry:
                result.append(record(name, 5, ttl, pack_name(entry["CNAME"])))
                name = entry["CNAME"]
                continue
            count = self.count(name, kind)
            rcode = entry.get("rcode", 0)
            if rcode and count > entry.get("fail", sys.maxsize):
                rcode = 0
            if rcode:
                return (rcode, [])
            result += [record(name, kind, ttl, data) for data in self.data(entry, kind, count)]
            break
        return (0, result)

    def answers(self, message, transport, peer):
        """The messages to send back, in order."""
        try:
            number, flags, question, name, kind = read_question(message)
        except (ValueError, IndexError, struct.error):
            return []
        self.note(name, kind, transport, peer)
        entry = self.entry(name) or {}
        if entry.get("drop"):
            return []
        time.sleep(entry.get("delay", 0))
        if "raw" in entry:
            return [bytes.fromhex(entry["raw"])]

        def reply(number, question, rcode, records, truncated=False):
            bits = 0x8080 | (flags & 0x0100) | (0x0200 if truncated else 0) | rcode
            return struct.pack("!HHHHHH", number, bits, 1, len(records), 0, 0) + question + b"".join(records)

        result = []
        if "forge" in entry:
            lies = [record(name, 1, 60, ipaddress.ip_address(a).packed) for a in entry["forge"]]
            result.append(reply(number ^ 0x5555, question, 0, lies))
            result.append(reply(number, pack_name("other.test") + question[-4:], 0, lies))
        rcode, records = self.records(name, kind)
        if entry.get("truncate") and transport == "udp":
            return result + [reply(number, question, rcode, [], truncated=True)]
        return result + [reply(number, question, rcode, records)]


def serve(zone, listen, port):
    family = socket.AF_INET6 if ":" in listen else socket.AF_INET

    class Udp(socketserver.BaseRequestHandler):
        def handle(self):
            message, sock = self.request
            for answer in zone.answers(message, "udp", self.client_address[0]):
                sock.sendto(answer, self.client_address)

    class Tcp(socketserver.StreamRequestHandler):
        def handle(self):
            while True:
                head = self.rfile.read(2)
                if len(head) < 2:
                    return
                message = self.rfile.read(struct.unpack("!H", head)[0])
                for answer in zone.answers(message, "tcp", self.client_address[0]):
                    self.wfile.write(struct.pack("!H", len(answer)) + answer)

    class TcpServer(socketserver.ThreadingTCPServer):
        address_family = family
        allow_reuse_address = True
        daemon_threads = True

    class UdpServer(socketserver.ThreadingUDPServer):
        address_family = family
        daemon_threads = True
        max_packet_size = 65535

    tcp = TcpServer((listen, port), Tcp)
    udp = UdpServer((listen, tcp.server_address[1]), Udp)
    threading.Thread(target=tcp.serve_forever, daemon=True).start()
    print("ready", tcp.server_address[1], flush=True)
    udp.serve_forever()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--zone", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--listen", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    serve(Zone(options.zone, options.log), options.listen, options.port)


if __name__ == "__main__":
    main()
