"""Objects of an S3 server as a pod's stager transfers them, without a cluster: the documents that the driver writes, with URLs that are signed here."""

import datetime
import hashlib
import hmac
import json
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

PARTS = 256  # as the driver signs for an output


class Signer:
    """Signs requests with Signature Version 4 in a URL's query. `via` is another address that leads to the endpoint."""

    def __init__(self, endpoint: str, bucket: str, key: str, secret: str, via: str = ""):
        self.host, self.endpoint, self.bucket, self.key = urllib.parse.urlsplit(endpoint).netloc, via or endpoint, bucket, key
        now = datetime.datetime.now(datetime.timezone.utc)
        self.stamp, self.scope = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d") + "/us-east-1/s3/aws4_request"
        signing = ("AWS4" + secret).encode()
        for part in self.scope.split("/"):
            signing = self.code(signing, part)
        self.signing = signing

    @staticmethod
    def code(key: bytes, text: str) -> bytes:
        return hmac.new(key, text.encode(), hashlib.sha256).digest()

    def sign(self, method: str, name: str, **query: str) -> tuple[str, str]:
        """Returns the URL without its signature, and the signature."""
        query |= {"X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": f"{self.key}/{self.scope}", "X-Amz-Date": self.stamp,
                  "X-Amz-Expires": "86400", "X-Amz-SignedHeaders": "host"}
        text = "&".join(f"{urllib.parse.quote(each, safe='')}={urllib.parse.quote(query[each], safe='')}" for each in sorted(query))
        path = f"/{self.bucket}/{urllib.parse.quote(name)}"
        request = f"{method}\n{path}\n{text}\nhost:{self.host}\n\nhost\nUNSIGNED-PAYLOAD"
        to_sign = f"AWS4-HMAC-SHA256\n{self.stamp}\n{self.scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        return f"{self.endpoint}{path}?{text}&X-Amz-Signature=", self.code(self.signing, to_sign).hex()

    def url(self, method: str, name: str, **query: str) -> str:
        return "".join(self.sign(method, name, **query))


def ask(method: str, url: str, body: bytes = b"") -> str:
    return urllib.request.urlopen(urllib.request.Request(url, data=body or None, method=method)).read().decode()


def between(text: str, tag: str) -> str:
    return text.split(f"<{tag}>")[1].split(f"</{tag}>")[0]


def output(signer: Signer, driver: Signer, path: str, name: str) -> dict:
    """Begins an upload, and returns the entry of the output in the stager's document."""
    upload = between(ask("POST", driver.url("POST", name, uploads="")), "UploadId")
    signed = [signer.sign("PUT", name, partNumber=str(number), uploadId=upload) for number in range(1, PARTS + 1)]
    before, after = signed[0][0].split("partNumber=1&")
    return {"name": "o", "path": path, "key": name, "whole": signer.url("PUT", name), "upload": upload, "before": before + "partNumber=", "after": "&" + after,
            "signatures": [each[1] for each in signed]}


def send(stager: str, signer: Signer, path: str, name: str, driver: Signer | None = None) -> dict:
    """Uploads and completes, as stager and driver do together. Returns the stager's report. @param driver signs the driver's requests"""
    driver = driver or signer
    made = output(signer, driver, path, name)
    document = Path(path + ".collect")
    document.write_text(json.dumps({"outputs": [made], "report": signer.url("PUT", name + ".report"), "failure": "/none"}))
    subprocess.run([stager, "collect", str(document), "0"], check=True)
    entry = json.loads(ask("GET", driver.url("GET", name + ".report")))["outputs"][0]
    if not entry["at_once"]:
        parts = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in enumerate(entry["tags"], 1))
        ask("POST", driver.url("POST", name, uploadId=made["upload"]), f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode())
    return entry


def receive(stager: str, signer: Signer, name: str, kind: str, digest: str, to: str) -> None:
    document = Path(to + ".fetch")
    document.write_text(json.dumps({"items": [{"to": to, "kind": kind, "digest": digest, "executable": False, "url": signer.url("GET", name)}]}))
    folder = Path(to + ".programs")
    folder.mkdir()
    subprocess.run([stager, "fetch", str(document), str(folder)], check=True)


def main() -> None:
    task, stager, endpoint, bucket, key, secret, *rest = sys.argv[1:]
    signer = Signer(endpoint, bucket, key, secret)
    if task == "send":
        print(json.dumps(send(stager, signer, *rest)))
    else:
        receive(stager, signer, *rest)


if __name__ == "__main__":
    main()
