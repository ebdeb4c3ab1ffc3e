"""A step that prints its secret, the canary, in every way that programs print secrets, and a search for forms of the secret that were kept."""

import base64
import contextlib
import json
import os
import pathlib
import string
import urllib.parse

# The step's ways to print its secret; arguments choose the ways and the places to cut.
STEP = '''
import base64, json, os, sys, textwrap, time, urllib.parse

secret = os.environb[b"CANARY"]
text = secret.decode()
plan = json.loads(sys.argv[1])


def say(bytes, cut=0):
    """At once, or in pieces that the driver reads one by one."""
    bytes += b" end\\n"
    if not cut:
        return os.write(1, bytes)
    for i in range(0, len(bytes), cut):
        os.write(1 + plan["err"], bytes[i:i + cut])
        if i < 20 * cut:
            time.sleep(0.0005)


def wrapped(text, width):
    return b"\\n".join(text[i:i + width] for i in range(0, len(text), width))


ways = {
    "plain": lambda: secret,
    "in a line": lambda: b"the token is '" + secret + b"', twice: " + secret * 2,
    "line by line": lambda: b"\\n".join(b"  " + line for line in secret.splitlines()),
    "broken lines": lambda: "\\n".join(text[i:i + plan["width"]] for i in range(0, len(text), plan["width"])).encode(),
    "base64": lambda: base64.b64encode(secret),
    "base64 of more": lambda: base64.b64encode(b"user:"[:plan["cut"] % 6] + secret + b"@host"),
    "base64 for URLs": lambda: base64.urlsafe_b64encode(secret),
    "base64 in lines": lambda: base64.encodebytes(b"name=" + secret + b"; and more of it" * 4),
    "base64 in lines of 64": lambda: wrapped(base64.b64encode(secret), 64),
    "hex": lambda: secret.hex().encode(),
    "HEX": lambda: secret.hex().upper().encode(),
    "hex in lines": lambda: wrapped(secret.hex().encode(), 60),
    "URL": lambda: b"https://host/?token=" + urllib.parse.quote(text, safe="").encode() + b"&x=1",
    "path": lambda: b"https://host/" + urllib.parse.quote(text).encode(),
    "form": lambda: urllib.parse.urlencode({"token": text}).encode(),
    "JSON": lambda: json.dumps({"token": text}).encode(),
    "JSON in UTF-8": lambda: json.dumps({"token": text}, ensure_ascii=False).encode(),
    "metric": lambda: b'@pipe ' + json.dumps({"metric": text, "value": 1}).encode(),
}
for way in plan["ways"]:
    say(ways[way](), plan["cut"] if plan["split"] else 0)
open(sys.argv[2], "w").write("done")
if plan["fails"]:
    with open(os.environ["PIPE_FAILURE_FILE"], "w") as file:
        json.dump({"type": "CanaryError", "message": "it was " + text, "traceback": text}, file)
    raise SystemExit(3)
'''

WAYS = ["plain", "in a line", "line by line", "broken lines", "base64", "base64 of more", "base64 for URLs", "base64 in lines", "base64 in lines of 64", "hex", "HEX",
        "hex in lines", "URL", "path", "form", "JSON", "JSON in UTF-8", "metric"]

LETTERS = string.ascii_letters + string.digits
SHAPES = {
    "token": lambda random: "".join(random.choices(LETTERS, k=random.randint(16, 40))),
    "short": lambda random: "".join(random.choices(LETTERS, k=random.randint(8, 12))),
    "symbols": lambda random: "".join(random.choices(LETTERS + string.punctuation + " ", k=random.randint(12, 60))).strip() + "x",
    "long": lambda random: "".join(random.choices(LETTERS + "+/=", k=random.randint(200, 1500))),
    "key": lambda random: "-----BEGIN CANARY KEY-----\n" + "\n".join("".join(random.choices(LETTERS + "+/", k=64)) for _ in range(random.randint(2, 25)))
    + "\n-----END CANARY KEY-----\n",
    "words": lambda random: " ".join("".join(random.choices("abcdefgäöüßéλж€", k=random.randint(3, 9))) for _ in range(4)),
}


def forms(secret: str) -> dict[str, bytes]:
    """Returns the forms of a secret that must not be found anywhere, by their names."""
    raw = secret.encode()
    found = {"plain": raw, "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode(), "URL": urllib.parse.quote(secret, safe="").encode(),
             "path": urllib.parse.quote(secret).encode(), "form": urllib.parse.quote_plus(secret).encode(), "JSON": json.dumps(secret)[1:-1].encode(),
             "JSON in UTF-8": json.dumps(secret, ensure_ascii=False)[1:-1].encode()}
    for i, line in enumerate(secret.splitlines()):
        if len(line) >= 8 and "CANARY" not in line:
            found[f"line {i}"] = line.encode()
    for before in range(3):
        text = base64.b64encode(b"\0" * before + raw)
        core = text[4 if before else 0:(before + len(raw)) // 3 * 4]
        found[f"base64 {before}"] = core
        found[f"base64 for URLs {before}"] = core.translate(bytes.maketrans(b"+/", b"-_"))
    return {name: form for name, form in found.items() if len(form) >= 8}


def leaks(secret: str, data: bytes, where: str) -> list[str]:
    """Returns the forms of the secret that are in the data, also if they are broken over lines."""
    joined = data.replace(b"\r", b"").replace(b"\n", b"")
    return [f"{name} in {where}" for name, form in forms(secret).items() if form in data or form.replace(b"\n", b"") in joined]


def leaks_below(secret: str, folder: pathlib.Path) -> list[str]:
    found = []
    for place, _, names in os.walk(folder):  # Files that are removed meanwhile, such as those of another container, are passed over.
        for path in (pathlib.Path(place) / name for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink():
                    found += leaks(secret, path.read_bytes(), str(path.relative_to(folder)))
    return found
