"""A small exporter, run as a program: `python -m tests.metrics.exporter PORT` serves /metrics for Prometheus.

`shop_requests_total` grows with each scrape, 98 of 100 requests with code 200; `shop_queue` has the number of a day for
each of three queues; `shop_idle` is always 0.
"""

from __future__ import annotations

import itertools
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

_SCRAPES = itertools.count(1)


class _Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        scrape = next(_SCRAPES)
        lines = [
            f'shop_requests_total{{app="my-app",code="200"}} {98 * scrape}',
            f'shop_requests_total{{app="my-app",code="500"}} {2 * scrape}',
            *(f'shop_queue{{queue="{name}"}} {number}' for name, number in (("a", 1), ("b", 2), ("c", 6))),
            "shop_idle 0",
        ]
        body = "\n".join(lines).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Log nothing."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), _Exporter).serve_forever()
