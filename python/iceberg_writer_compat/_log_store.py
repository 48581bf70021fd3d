"""Removes from DynamoDB what earlier versions wrote there through Delta's `S3DynamoDBLogStore`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from iceberg_writer_compat.exceptions import LogStoreError

# Delta's own names begin with a digit or an underscore.
_PUBLISHED = re.compile(r"v\d+(\.gz)?\.metadata\.json(\.gz)?|version-hint\.text")

_SCHEMES = ("s3a", "s3", "s3n")


@dataclass(frozen=True)
class Cleaned:
    """What was found, and removed unless it was a dry run.

    Attributes:
        entries: Table paths and file names of entries in DynamoDB.
        copies: Files in `_delta_log`, copied there by the log store.
    """

    entries: tuple[tuple[str, str], ...]
    copies: tuple[str, ...]


def clean(path: str, *, table: str, region: str | None, dry_run: bool) -> Cleaned:
    """Removes the entries of published metadata files from the commits of a table.

    Entries of Delta's own files are not changed. Endpoint and credentials are those of boto3: its
    environment variables and configuration files.

    Args:
        path: The folder of the Delta table, such as `s3a://bucket/orders`.
        table: The table in DynamoDB, `ddb.tableName` in the settings of the log store.
        region: The region of the table in DynamoDB; by default that of boto3.
        dry_run: Whether to change nothing.
    """
    place = urlsplit(path.rstrip("/"))
    if place.scheme not in _SCHEMES or not place.netloc or len(place.path) < 2:
        raise LogStoreError(f"{path} is not a folder on S3. Name it as s3a://bucket/orders.")
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise LogStoreError(
            "The entries are removed with boto3, which is not installed.\nRun: pip install boto3"
        ) from None
    bucket, folder = place.netloc, place.path.lstrip("/")
    try:
        dynamodb, s3 = boto3.client("dynamodb", region_name=region), boto3.client("s3")
        # The log store uses the scheme with which the table was opened.
        tables = [f"{scheme}://{bucket}/{folder}" for scheme in _SCHEMES]
        entries = [(one, name) for one in tables for name in _entries(dynamodb, table, one)]
        copies = _copies(s3, bucket, f"{folder}/_delta_log/")
        if not dry_run:
            for one, name in entries:
                key = {"tablePath": {"S": one}, "fileName": {"S": name}}
                dynamodb.delete_item(TableName=table, Key=key)
            for copy in copies:
                s3.delete_object(Bucket=bucket, Key=copy)
    except (BotoCoreError, ClientError) as error:
        raise LogStoreError(f"The log store of {path} could not be cleaned: {error}") from error
    return Cleaned(tuple(entries), tuple(f"{place.scheme}://{bucket}/{copy}" for copy in copies))


def _entries(dynamodb: Any, table: str, folder: str) -> list[str]:
    pages = dynamodb.get_paginator("query").paginate(
        TableName=table,
        ConsistentRead=True,
        KeyConditionExpression="tablePath = :folder AND begins_with(fileName, :v)",
        ExpressionAttributeValues={":folder": {"S": folder}, ":v": {"S": "v"}},
    )
    names = [str(item["fileName"]["S"]) for page in pages for item in page["Items"]]
    return [name for name in names if _PUBLISHED.fullmatch(name)]


def _copies(s3: Any, bucket: str, folder: str) -> list[str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{folder}v")
    keys = [str(one["Key"]) for page in pages for one in page.get("Contents", ())]
    return [key for key in keys if _PUBLISHED.fullmatch(key.removeprefix(folder))]
