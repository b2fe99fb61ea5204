"""Signs a vote by Standard Webhooks, so that it proves its sender on any channel."""

import json
from dataclasses import dataclass
from pathlib import Path

from bridge.common.signatures import Key, read_key, sign

_LARGEST = 4096
_NO_FILE = (
    "--sign-with takes the name of a file with the key: every user of this machine can read a "
    "command line, and the shell keeps it in its history"
)


@dataclass(frozen=True, slots=True)
class Signer:
    """A key that can sign."""

    key: Key

    @classmethod
    def read(cls, name: str) -> "Signer":
        """Raises ValueError with a sentence that does not reveal the key."""
        if name.startswith(("whsec_", "whsk_", "whpk_")):
            raise ValueError(_NO_FILE)
        try:
            with Path(name).open("rb") as file:
                text = file.read(_LARGEST).decode("ascii").strip()
            key = read_key(text)
        except OSError as error:
            raise ValueError(f"--sign-with {name}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ValueError(f"--sign-with {name}: this file does not contain a key") from None
        except ValueError as error:
            raise ValueError(f"--sign-with {name}: {error}") from None
        if not key.private:
            sentence = "a public key (whpk_) cannot sign; give the private one (whsk_)"
            raise ValueError(f"--sign-with {name}: {sentence}")
        return cls(key)

    def headers(self, message_id: str, now: float, body: bytes) -> dict[str, str]:
        return sign([self.key], message_id, int(now), body)

    def wrapped(self, message_id: str, now: float, body: bytes) -> str:
        """One line for a transport without headers: it contains the headers and the signed text."""
        headers = self.headers(message_id, now, body)
        return json.dumps({**headers, "payload": body.decode()}) + "\n"
