"""Puts tasks into the queue, one at a time as an application would, on a kept connection. Reads
`FROM COUNT` lines, and answers each with a line once all of it is queued.
"""

import sys

from tasks import app, notify

TEXT = "Your order has left our warehouse and will be with you in two to three working days. " * 6


def body(number):
    head = '{"event":"receipt","order":"order-%d","text":"' % number
    return head + TEXT[: 500 - len(head) - 2] + '"}'


print("ready", flush=True)
with app.producer_pool.acquire(block=True) as producer:
    for line in sys.stdin:
        first, count = map(int, line.split())
        for number in range(first, first + count):
            notify.apply_async((body(number),), producer=producer, task_id=f"order-{number}")
        print("queued", flush=True)
