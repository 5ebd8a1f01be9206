"""Serves one file over HTTP with range requests, and misbehaves on demand.

usage: range_server.py FILE CONTROL [PORT [CERTIFICATE]]

With CERTIFICATE, a PEM file with a certificate and its key, it serves HTTPS.

Prints "port N open" when it listens, then a line for each request: its range, the status, the size of
the body in bytes. CONTROL is a JSON file that is read at each request; without it, the server works correctly:
  delay_s        wait before the response; prints the range and "waits"
  delay_bytes    [first, last]: delay_s applies only to requests for any of these bytes of the file
  status, times  answer the first `times` requests (default: all) with this status; retry_after: the header Retry-After
  truncate       send at most this many bytes of a body, then close the connection
  corrupt        [first, last]: flip these bytes of the file in responses, for `times` requests
  no_range       ignore the range: 200 with the complete file
  shift          send a range that begins this many bytes later
  no_etag        send Last-Modified instead of an ETag
  no_checks      send neither ETag nor Last-Modified
  redirects      answer each request with another redirect to this server
  redirect_to    answer each request with a redirect to this URL
  files          {QUERY: PATH}: serve the file PATH to requests with this query in their URL
"""

import hashlib
import json
import os
import ssl
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILE, CONTROL = sys.argv[1:3]
LOCK = threading.Lock()
COUNTS = {}
CONTENTS = {}


def control():
    try:
        with open(CONTROL) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def contents(path):
    """Returns the content of a file and its ETag."""
    with LOCK:
        status = os.stat(path)
        version = (status.st_ino, status.st_mtime_ns)
        if path not in CONTENTS or CONTENTS[path][0] != version:
            with open(path, "rb") as file:
                data = file.read()
            CONTENTS[path] = version, data, f'"{hashlib.md5(data).hexdigest()}"'
        return CONTENTS[path][1:]


def take(name, limit):
    """Whether the fault `name` occurs again; it occurs at most `limit` times per version of the control file."""
    with LOCK:
        key = (name, os.stat(CONTROL).st_mtime_ns)
        COUNTS[key] = COUNTS.get(key, 0) + 1
        return COUNTS[key] <= limit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes, and Nagle's algorithm would delay the second one.
    disable_nagle_algorithm = True

    def do_GET(self):
        faults = control()
        path = faults.get("files", {}).get(self.path.partition("?")[2], FILE)
        data, tag = contents(path)
        asked = self.headers.get("Range", "")
        self.delay(faults, asked)
        limit = faults.get("times", 10**9)
        if faults.get("redirects"):
            return self.answer(302, b"", asked, {"Location": self.path + "x"})
        if "redirect_to" in faults:
            return self.answer(302, b"", asked, {"Location": faults["redirect_to"]})
        if "status" in faults and take("status", limit):
            extra = {"Retry-After": faults["retry_after"]} if "retry_after" in faults else {}
            return self.answer(faults["status"], b"no", asked, extra)
        first, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
        last = min(last, len(data) - 1)
        if first > last:
            return self.answer(416, b"", asked, {"Content-Range": f"bytes */{len(data)}"})
        extra = {}
        if faults.get("no_etag"):
            extra["Last-Modified"] = formatdate(os.stat(path).st_mtime, usegmt=True)
        elif not faults.get("no_checks"):
            extra["ETag"] = tag
        if faults.get("no_range"):
            return self.answer(200, data, asked, extra)
        first += faults.get("shift", 0)
        body = bytearray(data[first : last + 1])
        begin, end = faults.get("corrupt", [1, 0])
        begin, end = max(begin, first), min(end, last)
        if begin <= end and take("corrupt", limit):
            for i in range(begin, end + 1):
                body[i - first] ^= 0xFF
        extra["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return self.answer(206, bytes(body), asked, extra, faults.get("truncate"))

    def delay(self, faults, asked):
        if "delay_s" not in faults:
            return
        first, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
        begin, end = faults.get("delay_bytes", [0, 10**18])
        if last < begin or first > end:
            return
        with LOCK:
            print(f"{asked} waits", flush=True)
        time.sleep(faults["delay_s"])

    def answer(self, status, body, asked, extra, truncate=None):
        self.send_response(status)
        for name, value in extra.items():
            self.send_header(name, str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if truncate is not None and len(body) > truncate:
            body = body[:truncate]
            self.close_connection = True
        with LOCK:  # print() writes the newline separately
            print(f"{asked} {status} {len(body)} end", flush=True)
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    allow_reuse_address = True


PORT = int(sys.argv[3]) if len(sys.argv) > 3 else 0
server = Server(("127.0.0.1", PORT), Handler)
if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4])
    # Each connection's thread makes the handshake at its first read, so that it does not delay other connections.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(f"port {server.server_address[1]} open", flush=True)
server.serve_forever()
