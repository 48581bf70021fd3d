"""A proxy with TLS before a server without, as nginx is one when little is configured."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding")


@contextmanager
def before(server: str, certificate: Path, key: Path, below: str) -> Iterator[str]:
    """The address by which the proxy offers what the server has, below a path of its own."""
    inside = urlsplit(server).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            """By HTTP/1.0, with a connection for each request, and a name that is not asked for."""
            headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
            headers |= {"Host": inside, "Connection": "close"}
            headers |= {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            connection = http.client.HTTPConnection(inside, timeout=300)
            connection._http_vsn, connection._http_vsn_str = 10, "HTTP/1.0"  # type: ignore[attr-defined]
            try:
                path = self.path.removeprefix(below)
                connection.request(self.command, path, body or None, headers)
                answer = connection.getresponse()
                text = answer.read()
            finally:
                connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in (*HOP_BY_HOP, "content-length"):
                    self.send_header(name, value)
            if answer.status not in (204, 304):
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_HEAD = do_DELETE = pass_on

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        proxy.socket = context.wrap_socket(proxy.socket, server_side=True)
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"https://127.0.0.1:{proxy.server_port}{below}"
        finally:
            proxy.shutdown()
            thread.join()
