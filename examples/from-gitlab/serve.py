"""A model server: answers /N with its model of N, to those who have the token."""

import http.server
import os
import sys

MODELS = {"square": lambda n: n * n, "double": lambda n: 2 * n}


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            return self.reply(200, "ready")
        if self.headers["Authorization"] != os.environ["SERVER_TOKEN"]:
            return self.reply(403, "no such token")
        return self.reply(200, str(MODELS[os.environ["MODEL"]](int(self.path[1:]))))

    def reply(self, status: int, text: str):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())


print("serves", os.environ["MODEL"], flush=True)
http.server.HTTPServer(("", int(sys.argv[1])), Answers).serve_forever()
