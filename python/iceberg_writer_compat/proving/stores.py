"""The S3 settings of a session, for readers that do not use Hadoop's file systems."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

_SCHEMES = ("s3", "s3a", "s3n")


@dataclass(frozen=True)
class S3:
    """An S3 server and the credentials for it; None leaves a value to the reader's default.

    Attributes:
        endpoint: An address with its protocol.
        path_style: Whether the bucket is part of the path, not of the host's name.
    """

    endpoint: str | None
    region: str | None
    path_style: bool
    key: str | None = field(repr=False)
    secret: str | None = field(repr=False)
    token: str | None = field(repr=False)

    def pyiceberg(self) -> dict[str, str]:
        """The properties for pyiceberg."""
        known = {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.access-key-id": self.key,
            "s3.secret-access-key": self.secret,
            "s3.session-token": self.token,
            "s3.force-virtual-addressing": None if self.path_style else "true",
        }
        return {name: value for name, value in known.items() if value is not None}

    def duckdb(self) -> str:
        """The statement that creates the secret for DuckDB."""
        where = urlsplit(self.endpoint or "")
        known = {
            "ENDPOINT": where.netloc + where.path.rstrip("/") or None,
            "USE_SSL": "false" if where.scheme == "http" else None,
            "REGION": self.region,
            "URL_STYLE": "path" if self.path_style else None,
            "KEY_ID": self.key,
            "SECRET": self.secret,
            "SESSION_TOKEN": self.token,
        }
        parts = ["TYPE s3"]
        for name, value in known.items():
            if value is not None:
                quoted = value.replace("'", "''")
                parts.append(f"{name} '{quoted}'")
        return f"CREATE SECRET ({', '.join(parts)})"


def s3_of(spark: SparkSession, location: str) -> S3 | None:
    """The settings `fs.s3a.*` of the session, or else the variables of AWS; None if not on S3.

    Settings of the bucket override those of all buckets, as in Hadoop.
    """
    place = urlsplit(location)
    if place.scheme not in _SCHEMES:
        return None
    conf = spark._jsparkSession.sessionState().newHadoopConf()

    def asked(name: str, *variables: str) -> str | None:
        settings = (f"fs.s3a.bucket.{place.netloc}.{name}", f"fs.s3a.{name}")
        found = [conf.get(setting) for setting in settings]
        found += [os.environ.get(variable) for variable in variables]
        return next((value.strip() for value in found if value and value.strip()), None)

    endpoint = asked("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    if endpoint and "://" not in endpoint:
        plain = asked("connection.ssl.enabled") == "false"
        endpoint = f"{'http' if plain else 'https'}://{endpoint}"
    key = asked("access.key", "AWS_ACCESS_KEY_ID")
    return S3(
        endpoint,
        asked("endpoint.region", "AWS_REGION", "AWS_DEFAULT_REGION"),
        asked("path.style.access") == "true",
        key,
        asked("secret.key", "AWS_SECRET_ACCESS_KEY"),
        # A key of the session is not to be sent with the token of another.
        asked("session.token", *(["AWS_SESSION_TOKEN"] if key == _environment_key() else [])),
    )


def _environment_key() -> str | None:
    return os.environ.get("AWS_ACCESS_KEY_ID")
