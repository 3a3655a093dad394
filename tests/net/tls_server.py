#!/usr/bin/python3
"""An HTTPS server that tells its caller what it saw, with certificates of a test's own CA.

    tls_server.py --cert cert.pem --key key.pem --log connections.ndjson [--listen ::] [--port 0]
                  [--files DIRECTORY]

Prints "ready PORT". A GET of a file below DIRECTORY is answered with it (enough for `git clone` of a
repository after `git update-server-info`). Any other request is answered with one JSON object: the server name of the TLS
handshake, the Host header, the method and path, both addresses, and the size of the body. The same
goes to the log, a line a request; a connection whose handshake fails is logged with "error".
"""

import argparse
import http.server
import json
import pathlib
import socket
import ssl
import threading
import urllib.parse

LOG_LOCK = threading.Lock()


def make_ca(directory):
    """ca.pem and ca.key in `directory` (a pathlib.Path), made by openssl."""
    import subprocess

    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=nd7 test CA", "-keyout", directory / "ca.key",
         "-out", directory / "ca.pem"],
        check=True, capture_output=True)
    return directory / "ca.pem"


def make_certificate(directory, names):
    """cert.pem and key.pem for these names and addresses, signed by the CA made before."""
    import ipaddress
    import subprocess

    def alt(name):
        try:
            return f"IP:{ipaddress.ip_address(name)}"
        except ValueError:
            return f"DNS:{name}"

    (directory / "ext").write_text("subjectAltName=" + ",".join(map(alt, names)) + "\n")
    subprocess.run(
        ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=nd7 test server", "-keyout", directory / "key.pem", "-out", directory / "csr"],
        check=True, capture_output=True)
    subprocess.run(
        ["openssl", "x509", "-req", "-in", directory / "csr", "-CA", directory / "ca.pem", "-CAkey",
         directory / "ca.key", "-CAcreateserial", "-days", "2", "-extfile", directory / "ext",
         "-out", directory / "cert.pem"],
        check=True, capture_output=True)
    return directory / "cert.pem", directory / "key.pem"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--listen", default="::")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--files", type=pathlib.Path)
    options = parser.parse_args()

    def file_at(path):
        """The bytes of a file below --files, or None."""
        if options.files is None:
            return None
        top = options.files.resolve()
        file = (top / urllib.parse.unquote(path.split("?")[0]).lstrip("/")).resolve()
        return file.read_bytes() if file.is_relative_to(top) and file.is_file() else None

    def note(line):
        with LOG_LOCK, open(options.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert, options.key)

    def on_server_name(connection, name, _):
        connection.nd7_name = name

    context.sni_callback = on_server_name

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def tell(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            line = {"sni": getattr(self.connection, "nd7_name", None),
                    "host": self.headers.get("Host"), "method": self.command, "path": self.path,
                    "local": plain(self.connection.getsockname()[0]),
                    "from": plain(self.client_address[0]), "body_bytes": len(body)}
            note(line)
            found = file_at(self.path) if self.command == "GET" else None
            text = (json.dumps(line) + "\n").encode() if found is None else found
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if found is None else
                             "application/octet-stream")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        do_GET = do_HEAD = do_POST = do_PUT = tell

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in options.listen else socket.AF_INET
        daemon_threads = True
        request_queue_size = 512  # some tests connect all at once

        def server_bind(self):
            if self.address_family == socket.AF_INET6:
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            super().server_bind()

        # The handshake belongs to the connection's own thread.
        def process_request_thread(self, request, client_address):
            try:
                request.settimeout(20)
                request = context.wrap_socket(request, server_side=True)
            except OSError as error:
                note({"error": str(error), "from": plain(client_address[0])})
                request.close()
                return
            super().process_request_thread(request, client_address)

        def handle_error(self, request, client_address):
            pass

    server = Server((options.listen, options.port), Handler)
    print("ready", server.server_address[1], flush=True)
    server.serve_forever()


def plain(address):
    return address.removeprefix("::ffff:")


if __name__ == "__main__":
    main()
