"""Requests as a browser sends them for pages of other sites."""

import base64
import json
import urllib.error
import urllib.request

EVIL = "https://evil.example"
JSON = {"Content-Type": "application/json"}
FROM_ELSEWHERE = {
    "a form": {"Content-Type": "text/plain", "Origin": EVIL},
    "a form of a file or a frame": {"Content-Type": "text/plain", "Origin": "null"},
    "a script without a type": {"Content-Type": "", "Origin": EVIL},
    "a script": JSON | {"Origin": EVIL},
    "DNS rebinding": JSON | {"Host": "evil.example", "Origin": "http://evil.example"},
    "DNS rebinding without an Origin": JSON | {"Host": "127.0.0.1.evil.example"},
    "DNS rebinding of a private address": JSON | {"Host": "10.evil.example"},
}
"""Requests that a browser sends for pages of other sites."""


def basic(credentials: str) -> dict[str, str]:
    token = base64.b64encode(credentials.encode()).decode()
    return {"Authorization": f"Basic {token}"} if credentials else {}


def post(url: str, body: object, headers: dict[str, str]) -> int:
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
