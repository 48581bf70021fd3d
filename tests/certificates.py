"""Certificates that nobody has signed but their owner."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


class Certificate(NamedTuple):
    """A certificate of this machine and its key, in PEM, and a store of Java that trusts it."""

    certificate: Path
    key: Path
    store: Path


def made_in(folder: Path, keytool: str) -> Certificate:
    """Makes one for 127.0.0.1 and `localhost`."""
    made = Certificate(*(folder / name for name in ("server.pem", "key.pem", "trust.p12")))
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "catalog")])
    here = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    now, day = datetime.now(timezone.utc), timedelta(days=1)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
        .add_extension(x509.SubjectAlternativeName(here), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made.certificate.write_bytes(signed.public_bytes(Encoding.PEM))
    made.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    words = ["-importcert", "-noprompt", "-alias", "catalog", "-storepass", "changeit"]
    files = ["-file", str(made.certificate), "-keystore", str(made.store)]
    subprocess.run([keytool, *words, *files], check=True, capture_output=True)
    return made
