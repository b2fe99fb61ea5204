"""A signed approval with a private key (pip install cryptography): EVENT_ID VM URL."""

import base64
import json
import os
import sys
import time
import urllib.request
import uuid

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

event_id, vm, url = sys.argv[1:]
seed = base64.b64decode(os.environ["SEB_KEY"].removeprefix("whsk_"))[:32]
body = json.dumps({"eventId": event_id, "resource": vm, "seen": os.environ.get("SEEN")})
name, now = str(uuid.uuid4()), str(int(time.time()))
key = Ed25519PrivateKey.from_private_bytes(seed)
made = base64.b64encode(key.sign(f"{name}.{now}.{body}".encode())).decode()
headers = {"webhook-id": name, "webhook-timestamp": now, "webhook-signature": f"v1a,{made}"}
headers["content-type"] = "application/json"
request = urllib.request.Request(url, body.encode(), headers)
try:
    print(urllib.request.urlopen(request, timeout=30).read().decode())
except urllib.error.HTTPError as refused:
    sys.exit(refused.read().decode())
