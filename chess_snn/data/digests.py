"""JSON objects that carry a digest of themselves, so that no edit of them goes unnoticed."""

import hashlib
import json
from typing import Final

from chess_snn.types import Json

DIGEST: Final = "digest"


def digest_of(body: Json) -> str:
    """SHA-256, in hex, of everything in ``body`` but its digest; key order does not matter."""
    rest = {name: value for name, value in body.items() if name != DIGEST}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def with_digest(body: Json) -> Json:
    """``body`` with its digest, which it must not have yet."""
    assert DIGEST not in body
    return body | {DIGEST: digest_of(body)}


def is_own_digest(body: Json) -> bool:
    """Whether the digest that ``body`` carries is its own."""
    try:
        return bool(body.get(DIGEST) == digest_of(body))
    except ValueError:  # NaN, which this program never writes
        return False
