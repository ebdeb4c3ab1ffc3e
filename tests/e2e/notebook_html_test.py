"""The pages draw HTML in the outputs of notebooks, but it can neither run a script there nor send a request."""

import json
import socket
import unittest

from serve_test import ServeTest
from support_browser import BROWSER, Browser

TABLE = """<div><style scoped>th { color: red }</style><table border="1" class="dataframe">
<thead><tr><th></th><th>accuracy</th></tr></thead><tbody><tr><th>0</th><td>0.93</td></tr></tbody></table></div>"""
AT = "http://127.0.0.1:PORT/"  # A server of the test; setUp() replaces PORT.
# HTML that tries to change the title of the page and to send requests.
HOSTILE = f"""<p>hostile</p><img src=x onerror="parent.document.title = 'taken'"><img src="{AT}pixel" srcset="{AT}more"><svg onload="top.document.title = 'taken'"></svg>
<a href="javascript:parent.document.title = 'taken'">click</a><a target="_top" href="{AT}top">leave</a><table background="{AT}table"></table><style>@import "{AT}style"</style></font>"""
# HTML that is left out, with a note in its place, keyed by its element.
REFUSED = {"meta": f'<meta http-equiv="refresh" content="0; url={AT}">', "iframe": f'<iframe src="{AT}"></iframe>', "link": f'<link rel=preconnect href="{AT}">', "script": "<SCRIPT>1</script>",
           "form": f'<form action="{AT}"></form>', "object": f'<b><object data="{AT}"></b>'}
# A PNG of one pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def shown(**data):
    """Returns an output of a cell; `text_html` is its content of type text/html."""
    return {"output_type": "display_data", "metadata": {}, "data": {name.replace("_", "/"): text for name, text in data.items()}}


@unittest.skipUnless(BROWSER, "no Chromium")
class Html(ServeTest):
    def setUp(self):
        super().setUp()
        self.other = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.other.close)
        outputs = [*(shown(text_html=text.replace("PORT", str(self.other.getsockname()[1]))) for text in (TABLE, HOSTILE, *REFUSED.values())), shown(image_png=PIXEL)]
        cell = {"cell_type": "code", "source": "table", "metadata": {}, "execution_count": 1, "outputs": outputs}
        self.write("made.ipynb", json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
        self.pipeline({"train": {"command": "cp made.ipynb ${outputs.page}", "code": ["made.ipynb"], "outputs": {"page": "page.ipynb"}}})
        self.run_id = self.run_pipe().events("run_started")[0]["run"]
        self.browser = Browser(1000)
        self.addCleanup(self.browser.close)

    def check(self):
        """Checks the notebook in the open page: two sandboxed frames, notes in place of the refused HTML, the picture, and no request to the test's server."""
        self.browser.js("document.querySelector('details.notebook').scrollIntoView()")
        self.browser.wait("document.querySelector('.notebook img').naturalWidth === 1")
        self.assertEqual(self.browser.js("[...document.querySelectorAll('iframe')].map((one) => one.getAttribute('sandbox') + (one.contentDocument === null))"), ["true", "true"])
        texts = self.browser.js("[...document.querySelectorAll('.notebook pre')].map((one) => one.textContent)")
        self.assertEqual(texts, ["table", *(f"(HTML with <{element}>, which could run or load something, is left out: display a picture to have it here)" for element in REFUSED)])
        tree = self.browser.call("DOM.getDocument", depth=-1, pierce=True)
        self.assertIn("0.93", json.dumps(tree))
        self.assertNotIn("taken", self.browser.js("document.title"))
        self.other.settimeout(1)
        with self.assertRaises(TimeoutError, msg="the frame asks for nothing"):
            self.other.accept()

    def test_in_a_report(self):
        self.assertEqual(self.pipe("report", "latest", "-o", "report.html").code, 0)
        self.browser.open(f"file://{self.folder}/report.html", "document.querySelectorAll('iframe').length === 2")
        self.check()

    def test_on_the_live_page(self):
        self.serve()
        self.browser.open(self.address.replace("/?", f"/run/{self.run_id}?"), "document.querySelectorAll('iframe').length === 2")
        self.check()


if __name__ == "__main__":
    unittest.main()
