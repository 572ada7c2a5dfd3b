"""Orders with the client `bepusdt` as it comes from PyPI: the URL of an adapter, its secret, and callbacks as a file of JSON."""

import json
import sys

from bepusdt import BEpusdtClient
from bepusdt.exceptions import APIError

url, secret, callbacks = sys.argv[1:4]
client = BEpusdtClient(api_url=url, api_token=secret, max_retries=0)
shop = {"notify_url": "https://shop.example/notify", "redirect_url": "https://shop.example/back"}


def refused(ask):
    try:
        ask()
    except APIError as error:
        return {"status_code": error.status_code, "message": str(error)}
    return None


def told(order):
    return {name: value for name, value in vars(order).items() if value not in (None, "", 0)}


order = client.create_order(order_id="py-1", amount=100, name="book", timeout=1200, fiat="CNY", **shop)
waiting = client.query_order(order.trade_id)
cancelled = client.cancel_order(order.trade_id)
json.dump(
    {
        "order": told(order),
        "usd": refused(lambda: client.create_order(order_id="py-2", amount=100, fiat="USD", **shop)),
        "silent": told(client.create_order(order_id="py-3", amount=100.5, **shop)),
        "rate": refused(lambda: client.create_order(order_id="py-4", amount=100, rate=0.5, **shop)),
        "address": refused(lambda: client.create_order(order_id="py-5", amount=100, address="T1", **shop)),
        "coin": refused(lambda: client.create_order(order_id="py-6", amount=100, trade_type="tron.trx", **shop)),
        "waiting": told(waiting),
        "cancelled": cancelled,
        "after": told(client.query_order(order.trade_id)),
        "unknown": refused(lambda: client.query_order("inv_x")),
        "callbacks": [client.verify_callback(each) for each in json.load(open(callbacks))],
    },
    sys.stdout,
    default=str,
)
