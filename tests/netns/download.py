#!/usr/bin/env python3
"""Downloads a page and prints as JSON how many bytes came and at what rate: `download.py URL`. The first second, in which
an association begins to use its paths, does not count for the rate."""

import json
import sys
import time
import urllib.request


def main():
    total = counted = 0
    with urllib.request.urlopen(sys.argv[1], timeout=60) as page:
        begin = since = end = time.monotonic()
        while data := page.read(1 << 16):
            end = time.monotonic()
            total += len(data)
            if end - begin < 1:
                since = end
            else:
                counted += len(data)
    print(json.dumps({"bytes": total, "bps": counted * 8 / (end - since) if end > since else 0.0}))


if __name__ == "__main__":
    main()
