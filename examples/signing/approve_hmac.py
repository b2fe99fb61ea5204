"""A signed approval with a shared key, in Python alone: approve_hmac.py EVENT_ID VM URL."""

import base64
import hmac
import json
import os
import sys
import time
import urllib.request
import uuid

event_id, vm, url = sys.argv[1:]
key = base64.b64decode(os.environ["SEB_KEY"].removeprefix("whsec_"))
body = json.dumps({"eventId": event_id, "resource": vm, "seen": os.environ.get("SEEN")})
name, now = str(uuid.uuid4()), str(int(time.time()))
made = base64.b64encode(hmac.digest(key, f"{name}.{now}.{body}".encode(), "sha256")).decode()
headers = {"webhook-id": name, "webhook-timestamp": now, "webhook-signature": f"v1,{made}"}
headers["content-type"] = "application/json"
request = urllib.request.Request(url, body.encode(), headers)
try:
    print(urllib.request.urlopen(request, timeout=30).read().decode())
except urllib.error.HTTPError as refused:
    sys.exit(refused.read().decode())
