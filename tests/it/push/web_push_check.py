#!/usr/bin/env python3
"""Reads push messages as a browser would, and their senders' tokens as a push service would.

    web_push_check.py FILE    FILE is a list of messages, each with what it is to hold
"""

import base64
import json
import pathlib
import sys

import http_ece
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature


def raw(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def check_token(message):
    """The token is signed with the key beside it (RFC 8292) and claims what it is to claim."""
    token, key = message["authorization"].removeprefix("vapid t=").split(", k=")
    assert key == message["key"], "another key"
    signed, signature = token.rsplit(".", 1)
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw(key))
    signature = raw(signature)
    assert len(signature) == 64, "the signature is not r and s"
    pair = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    point.verify(encode_dss_signature(*pair), signed.encode(), ec.ECDSA(hashes.SHA256()))
    head, claims = (json.loads(raw(part)) for part in signed.split("."))
    assert head == {"typ": "JWT", "alg": "ES256"}, head
    assert claims == message["claims"], claims


def check_body(message):
    private = ec.derive_private_key(int.from_bytes(raw(message["private"]), "big"), ec.SECP256R1())
    body = raw(message["body"])
    assert len(body) <= 4096, len(body)
    plaintext = http_ece.decrypt(body, private_key=private, auth_secret=raw(message["auth"]), version="aes128gcm")
    assert plaintext.decode() == message["plaintext"], plaintext


messages = json.loads(pathlib.Path(sys.argv[1]).read_bytes())
for one in messages:
    check_token(one)
    check_body(one)
print(f"{len(messages)} messages read")
