"""Intake: reading and validating what a caller sent, before anything is written.

Rules: the payload is kept byte for byte as it came, since every attempt sends those bytes; the
fingerprint is taken over the destination and the payload's meaning (keys sorted), so a client
that formats the same JSON differently still repeats the same operation. A body over the limit is
refused before it is parsed, but a bounded part of it is still read, so that the caller gets the
answer and not a broken connection.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request

from handler.problems import Problem

__all__ = ["Intake", "read_intake"]

# Room for the envelope around a payload of the largest size.
_ENVELOPE_BYTES = 4096
# How much of an oversized body is read and dropped for the sake of a clean answer.
_DRAIN_BYTES = 16 * 1024 * 1024
_REMEDY = 'Send {"destination": "<name>", "payload": <any JSON>}'
# A float would make one of two long numbers that differ in their last digits.
_MEANING = msgspec.json.Decoder(float_hook=Decimal)


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    destination: str
    payload: msgspec.Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """A valid request for an operation.

    Attributes:
        destination: A configured destination's name.
        payload: The payload's bytes as they came.
        fingerprint: Tells the same request from another one under the same key.
        key: The caller's Idempotency-Key, or None.
    """

    destination: str
    payload: bytes
    fingerprint: str
    key: str | None


async def read_intake(
    request: Request, *, destinations: Collection[str], max_payload_bytes: int, max_key_chars: int
) -> Intake:
    """Read one request.

    Raises:
        Problem: The request cannot become an operation; nothing was written.
    """
    key = _read_key(request, max_key_chars)
    body, meaning = _parse(await _read_body(request, max_payload_bytes))
    payload = bytes(body.payload)
    if len(payload) > max_payload_bytes:
        raise _too_large(max_payload_bytes)
    if body.destination not in destinations:
        known = ", ".join(sorted(destinations)) or "none is configured"
        raise Problem(
            422,
            "unknown-destination",
            f"no destination is named {body.destination[:100]!r}",
            field="destination",
            remedy=f"Use one of: {known}",
        )
    return Intake(
        destination=body.destination,
        payload=payload,
        fingerprint=_fingerprint(body.destination, meaning),
        key=key,
    )


def _read_key(request: Request, max_key_chars: int) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    # Only blanks may be taken off and only ASCII be read: a header's bytes arrive as Latin-1, in
    # which stripping "white space" would make one key of two.
    key = keys[0].strip(" \t")
    plain = key.isascii() and key.isprintable()
    if len(keys) > 1 or not key or len(key) > max_key_chars or not plain:
        raise Problem(
            400,
            "bad-idempotency-key",
            f"Idempotency-Key must be given once, as 1 to {max_key_chars} printable ASCII signs",
            field="Idempotency-Key",
            remedy="Send one key per operation, for example a UUID",
        )
    return key


async def _read_body(request: Request, max_payload_bytes: int) -> bytes:
    limit_bytes = max_payload_bytes + _ENVELOPE_BYTES
    chunks: list[bytes] = []
    read_bytes = 0
    try:
        async for chunk in request.stream():
            read_bytes += len(chunk)
            if read_bytes <= limit_bytes:
                chunks.append(chunk)
            elif read_bytes > limit_bytes + _DRAIN_BYTES:
                break
    except ClientDisconnect as error:
        # Nobody reads this answer; it keeps a client's leaving from looking like our defect.
        raise Problem(
            400,
            "incomplete-body",
            "the client left before the body's end",
            field="body",
            remedy=_REMEDY,
        ) from error
    if read_bytes > limit_bytes:
        raise _too_large(max_payload_bytes)
    return b"".join(chunks)


def _too_large(max_payload_bytes: int) -> Problem:
    return Problem(
        413,
        "payload-too-large",
        f"the payload is larger than {max_payload_bytes} bytes",
        field="payload",
        remedy="Store the data elsewhere and send a reference to it",
    )


def _parse(raw: bytes) -> tuple[_Body, Any]:
    """Return the envelope and what its payload means, numbers with every digit they came with."""
    try:
        body = msgspec.json.decode(raw, type=_Body)
        # The envelope's decoder skips over the payload; this looks inside.
        meaning = _MEANING.decode(body.payload)
    except msgspec.ValidationError as error:
        text = str(error)
        field = next((name for name in ("destination", "payload") if f"`{name}`" in text), None)
        if field is None:
            field = "destination" if "$.destination" in text else "body"
        raise Problem(400, "bad-request", text, field=field, remedy=_REMEDY) from error
    except (msgspec.DecodeError, ArithmeticError, RecursionError) as error:
        detail = f"the body is not JSON: {error}"
        raise Problem(400, "malformed-json", detail, field="body", remedy=_REMEDY) from error
    return body, meaning


def _fingerprint(destination: str, meaning: Any) -> str:
    canonical = msgspec.json.Encoder(decimal_format="number", order="sorted")
    return hashlib.sha256(canonical.encode([destination, meaning])).hexdigest()
