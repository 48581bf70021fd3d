"""An S3 server in this process that records every request and can fail some."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "us-east-1"
ACCESS_KEY, SECRET_KEY = "testing", "testing-secret"

Answer = Iterable[bytes]
StartResponse = Callable[..., Any]


class _QuietHandler(WSGIRequestHandler):
    """Prints no line for each request."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """ObjectStore records it."""


@dataclass(frozen=True)
class Request:
    """One request to the server, with its status.

    Attributes:
        kind: PUT, COPY, GET, HEAD, LIST or DELETE.
        key: The object, without the bucket.
    """

    kind: str
    key: str
    status: int


@dataclass
class Fault:
    """Answers some requests by an error.

    Attributes:
        kinds: The kinds of requests that can fail; `key` restricts them further.
        before: The number of such requests that succeed first.
        left: The number of requests that fail then.
        lost: The request is executed, and only its answer is replaced by the error.
    """

    kinds: tuple[str, ...]
    key: re.Pattern[str]
    status: int
    before: int
    left: int
    lost: bool

    def meets(self, kind: str, key: str) -> bool:
        """Whether this request is to fail."""
        if kind not in self.kinds or not self.key.search(key):
            return False
        if self.before:
            self.before -= 1
            return False
        self.left -= 1
        return self.left >= 0


@dataclass
class ObjectStore:
    """The server."""

    bucket: str
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    writing: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[ObjectStore]:
        """A server on a free port of this machine."""
        store = cls("bucket")
        moto = DomainDispatcherApplication(create_backend_app)

        def application(environ: dict[str, Any], respond: StartResponse) -> Answer:
            return store._answer(moto, environ, respond)

        server = make_server(
            "127.0.0.1", 0, application, threaded=True, request_handler=_QuietHandler
        )
        store.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            store.s3.create_bucket(Bucket=store.bucket)
            yield store
        finally:
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def hadoop_settings(self) -> dict[str, str]:
        """The settings for Hadoop, for the schemes s3a, s3 and s3n."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.access.key": ACCESS_KEY,
            "fs.s3a.secret.key": SECRET_KEY,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.attempts.maximum": "2",
            "fs.s3a.retry.limit": "2",
            "fs.s3a.retry.interval": "10ms",
            "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "fs.s3n.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        }

    def pyiceberg_settings(self) -> dict[str, str]:
        """The properties for pyiceberg."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": REGION,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
        }

    @cached_property
    def s3(self) -> Any:
        """A client that is independent of this project."""
        return self._client("s3")

    @cached_property
    def dynamodb(self) -> Any:
        """A client of the DynamoDB in the same server."""
        return self._client("dynamodb")

    def _client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )

    def text(self, key: str) -> str:
        """The content of an object."""
        found = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return str(found, "utf-8")

    def keys(self, prefix: str) -> list[str]:
        """The keys of all objects below a folder."""
        pages = self.s3.get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.bucket, Prefix=f"{prefix}/")
        return [item["Key"] for page in found for item in page.get("Contents", [])]

    @contextmanager
    def noted(self) -> Iterator[list[Request]]:
        """The requests that are made until the block ends."""
        noted: list[Request] = []
        with self.lock:
            before = len(self.requests)
        yield noted
        with self.lock:
            noted.extend(self.requests[before:])

    @contextmanager
    def failing(
        self,
        *kinds: str,
        key: str = "",
        status: int = 403,
        before: int = 0,
        times: int = 10**9,
        lost: bool = False,
    ) -> Iterator[Fault]:
        """Requests of these kinds whose key matches fail."""
        fault = Fault(kinds, re.compile(key), status, before, times, lost)
        with self.lock:
            self.faults.append(fault)
        try:
            yield fault
        finally:
            with self.lock:
                self.faults.remove(fault)

    def _answer(self, moto: Any, environ: dict[str, Any], respond: StartResponse) -> Answer:
        kind, key = self._what(environ)
        with self.lock:
            fault = next((f for f in self.faults if f.meets(kind, key)), None)
        if fault is None or fault.lost:

            def noting(status: str, headers: Any, *more: Any) -> Any:
                with self.lock:
                    self.requests.append(Request(kind, key, int(status.split()[0])))
                return None if fault else respond(status, headers, *more)

            # moto checks the condition of a PUT and then writes; S3 does both in one step.
            with self.writing if kind == "PUT" else nullcontext():
                answer: Answer = moto(environ, noting)
            if fault is None:
                return answer
            b"".join(answer)
        else:
            with self.lock:
                self.requests.append(Request(kind, key, fault.status))
            # If the body is not read, the client sees a broken connection instead of the error.
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        respond(f"{fault.status} By the test", [("Content-Type", "application/xml")])
        return [b"<Error><Code>ByTheTest</Code><Message>by the test</Message></Error>"]

    def _what(self, environ: dict[str, Any]) -> tuple[str, str]:
        method, query = environ["REQUEST_METHOD"], environ.get("QUERY_STRING", "")
        key = environ["PATH_INFO"].removeprefix(f"/{self.bucket}").removeprefix("/")
        if method == "GET" and "list-type=2" in query:
            return "LIST", parse_qs(query).get("prefix", [""])[0]
        if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
            return "COPY", key
        if method == "POST" and query.startswith("delete"):
            return "DELETE", key
        return method, key


def counts(requests: list[Request]) -> Counter[str]:
    """How many requests of each kind there are."""
    return Counter(request.kind for request in requests)
