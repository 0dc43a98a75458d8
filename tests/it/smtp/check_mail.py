#!/usr/bin/env python3
"""Compares mails with what was meant, by Python's strict parser. Prints every difference.

    check_mail.py DIR                      reads DIR/<name>.eml
    check_mail.py DIR --imap HOST:PORT USER PASSWORD   waits for the mails in that mailbox
    check_mail.py DIR --dkim               verifies signatures too, keys from DIR/dkim.json (dkimpy)

DIR/expected.json is a list of what the mails are to hold.
"""

import base64
import email.header
import email.policy
import email.utils
import imaplib
import json
import pathlib
import re
import sys
import time

STRICT = email.policy.strict + email.policy.SMTP
WORD = re.compile(rb"=\?([^?\s]+)\?([bBqQ])\?([^?\s]*)\?=")


def read_imap(where, user, password, wanted, patience=120):
    """Every mail of the mailbox by Message-ID, once all that are wanted have arrived."""
    host, port = where.rsplit(":", 1)
    deadline = time.monotonic() + patience
    while True:
        box = imaplib.IMAP4(host, int(port))
        box.login(user, password)
        _, (count,) = box.select("INBOX", readonly=True)
        if int(count) >= len(wanted):
            break
        box.logout()
        if time.monotonic() > deadline:
            raise SystemExit(f"only {int(count)} of {len(wanted)} mails arrived")
        time.sleep(0.1)
    _, parts = box.fetch("1:*", "(BODY.PEEK[])")
    box.logout()
    raw = [part[1] for part in parts if isinstance(part, tuple)]
    found = {}
    for one in raw:
        ids = re.findall(rb"(?im)^Message-ID:\s*(\S+)", one.split(b"\r\n\r\n", 1)[0])
        assert len(ids) == 1, ids
        assert ids[0] not in found, "the same mail arrived twice"
        found[ids[0].decode()] = one
    return found


def check_bytes(raw, say):
    """What holds for the bytes, before any parser."""
    head, _, body = raw.partition(b"\r\n\r\n")
    if re.search(rb"(?<!\r)\n|\r(?!\n)", raw):
        say("a bare CR or LF")
    for line in raw.split(b"\r\n"):
        if len(line) > 998:
            say("a line of more than 998 octets")
    if any(len(line) > 76 for line in body.split(b"\r\n") if not re.match(rb"[\w-]+:|[ \t]", line)):
        say("a body line of more than 76 octets")
    if b"?==?" in head:
        say("two encoded words that touch")
    for line in head.split(b"\r\n"):
        for word in WORD.finditer(line):
            if len(word.group(0)) > 75:
                say("an encoded word of more than 75 characters")
            try:
                base64.b64decode(word.group(3), validate=True).decode("utf-8")
            except ValueError:
                say("an encoded word that is not whole characters by itself")
        if WORD.search(line) and len(line) > 76 + len(b"<>") + 64 * line.count(b"@"):
            say("a line with an encoded word of more than 76 octets")


def boxes(raw, name, strict):
    """Names and addresses. Names by the older parser of the same package: the strict one keeps the
    white space between the encoded words of a name (RFC 2047 6.2 says to drop it)."""
    if strict is None:
        return []
    header = email.message_from_bytes(raw, policy=email.policy.compat32)[name]
    text = str(header).replace("\r\n", "") if not isinstance(header, str) else header.replace("\r\n", "")
    names = [str(email.header.make_header(email.header.decode_header(one))) if one else ""
             for one, _ in email.utils.getaddresses([text])]
    addresses = [one.addr_spec for one in strict.addresses]
    assert len(names) == len(addresses), (names, addresses)
    return [[one, address] for one, address in zip(names, addresses)]


def check_parts(mail, want, say):
    """multipart/mixed > multipart/alternative > (text, multipart/related > html, inline)."""
    attached = [one for one in want["attachments"] if not (one["cid"] and want["html"] is not None)]
    inline = [one for one in want["attachments"] if one["cid"] and want["html"] is not None]
    if attached:
        if mail.get_content_type() != "multipart/mixed":
            return say(f"{mail.get_content_type()} where attachments want multipart/mixed")
        content, *files = mail.iter_parts()
        check_files(files, attached, "attachment", say)
    else:
        content = mail
    if want["html"] is None:
        return check_text(content, "text/plain", want["text"], say)
    if content.get_content_type() != "multipart/alternative":
        return say(f"{content.get_content_type()} where text and HTML want multipart/alternative")
    parts = list(content.iter_parts())
    if len(parts) != 2:
        return say("the alternatives are not two")
    check_text(parts[0], "text/plain", want["text"], say)
    html = parts[1]
    if inline:
        if html.get_content_type() != "multipart/related":
            return say("inline images are not multipart/related")
        html, *files = html.iter_parts()
        check_files(files, inline, "inline", say)
    check_text(html, "text/html", want["html"], say)


def check_text(part, kind, text, say):
    if part.get_content_type() != kind:
        return say(f"{part.get_content_type()} instead of {kind}")
    got = part.get_payload(decode=True).decode("utf-8")
    # The stated rule: every line end becomes CRLF, and the last line has one.
    meant = re.sub(r"\r\n|\r|\n", "\r\n", text)
    meant = meant if meant.endswith("\r\n") else meant + "\r\n"
    if part.get("Content-Transfer-Encoding", "7bit") == "7bit" and not got.endswith("\r\n"):
        got += "\r\n"
    # A part's last line end belongs to the boundary after it.
    if got != meant and got + "\r\n" != meant:
        say(f"the {kind} differs: {got[:60]!r} instead of {meant[:60]!r}")


def check_files(parts, wanted, disposition, say):
    if len(parts) != len(wanted):
        return say(f"{len(parts)} files instead of {len(wanted)}")
    for part, want in zip(parts, wanted):
        if part.get_payload(decode=True) != base64.b64decode(want["base64"]):
            say("a file's content differs")
        if part.get_filename() != want["filename"]:
            say(f"file name {part.get_filename()!r} instead of {want['filename']!r}")
        if part.get_content_type() != want["content_type"].split(";")[0]:
            say(f"content type {part.get_content_type()!r}")
        if part.get_content_disposition() != disposition:
            say(f"disposition {part.get_content_disposition()!r}")
        if (part.get("Content-ID") or "").strip("<>") != (want["cid"] or ""):
            say(f"Content-ID {part.get('Content-ID')!r}")


def check(raw, want, say):
    check_bytes(raw, say)
    mail = email.message_from_bytes(raw, policy=STRICT.clone(utf8=want["utf8"]))
    for name in ("Message-ID", "Date", "From", "MIME-Version", "Subject", "To"):
        if len(mail.get_all(name, [])) != 1:
            say(f"{len(mail.get_all(name, []))} {name} headers")
    if mail.get_all("Bcc"):
        say("Bcc is shown")
    if mail["Subject"] != want["subject"]:
        say(f"subject {mail['Subject']!r} instead of {want['subject']!r}")
    if mail["Message-ID"] != want["message_id"] or not re.fullmatch(r"<[^\s<>@]+@[^\s<>@]+>", mail["Message-ID"]):
        say(f"Message-ID {mail['Message-ID']!r}")
    if mail["Date"].datetime.timestamp() != want["date"]:
        say(f"Date {mail['Date']!r}")
    for name in ("From", "To", "Cc", "Reply-To"):
        if boxes(raw, name, mail[name]) != want[name]:
            say(f"{name} {boxes(raw, name, mail[name])!r} instead of {want[name]!r}")
    for name, value in want["headers"]:
        if mail.get_all(name) != [value]:
            say(f"{name} {mail.get_all(name)!r} instead of {value!r}")
    for part in mail.walk():
        for defect in part.defects:
            say(f"defect {defect!r}")
        for value in part.values():
            for defect in getattr(value, "defects", ()):
                say(f"header defect {defect!r}")
    check_parts(mail, want, say)


def check_signature(raw, keys, say):
    import dkim

    def txt(name, timeout=5):
        return keys[name.decode().rstrip(".")].encode()

    if not dkim.verify(raw, dnsfunc=txt):
        say("the DKIM signature does not verify")
    signed = re.search(rb"(?ims)^DKIM-Signature:.*?\bh=([^;]*);", raw).group(1)
    if signed.lower().replace(b"\r\n", b"").replace(b" ", b"").split(b":").count(b"from") != 2:
        say("From is not signed against a second one")


def main(arguments):
    folder = pathlib.Path(arguments[0])
    wanted = json.loads((folder / "expected.json").read_text("utf-8"))
    arrived = read_imap(*arguments[2:5], wanted) if "--imap" in arguments else None
    keys = json.loads((folder / "dkim.json").read_text("utf-8")) if "--dkim" in arguments else None
    differences = 0
    for want in wanted:
        def say(what):
            nonlocal differences
            differences += 1
            print(f"{want['name']}: {what}")

        raw = arrived[want["message_id"]] if arrived is not None else (folder / f"{want['name']}.eml").read_bytes()
        try:
            check(raw, want, say)
            if keys is not None:
                check_signature(raw, keys, say)
        except Exception as error:  # A defect that the strict parser raises is a difference too.
            say(f"{type(error).__name__}: {error}")
    print(f"{len(wanted)} mails, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
