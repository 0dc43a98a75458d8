"""The Celery peer: one POST to the sink for each task, over a kept connection; acknowledged late.

  celery -A tasks worker …            BROKER and SINK come from the environment
"""

import os

import requests
from celery import Celery

app = Celery("tasks", broker=os.environ["BROKER"], backend=None)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    task_serializer="json",
    accept_content=["json"],
    task_default_delivery_mode=2,
    worker_prefetch_multiplier=int(os.environ.get("PREFETCH", "16")),
    worker_send_task_events=False,
    worker_disable_rate_limits=True,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
    broker_pool_limit=10,
)

SINK = f"http://{os.environ.get('SINK', '')}/now"
HEADERS = {"content-type": "application/json"}
_sessions = {}


def session():
    """One for each process: a kept connection must not be shared across a fork."""
    own = _sessions.get(os.getpid())
    if own is None:
        own = _sessions[os.getpid()] = requests.Session()
        # The environment's proxies and netrc would be looked up for every single call.
        own.trust_env = False
        size = int(os.environ.get("POOL", "1"))
        own.mount("http://", requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=size))
    return own


@app.task(name="notify", max_retries=10, default_retry_delay=2)
def notify(body):
    session().post(SINK, data=body, headers=HEADERS, timeout=30).raise_for_status()
