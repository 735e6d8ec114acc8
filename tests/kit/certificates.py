"""Creates certificates for tests."""

from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def certificate(folder: Path, name: str, until: datetime) -> Path:
    """Write a certificate and its key to one file, valid for this address or host name until the given date."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "documentation")])
    names = x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(until - timedelta(days=30))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = folder / "own.pem"
    path.write_bytes(private + built.public_bytes(Encoding.PEM))
    return path
