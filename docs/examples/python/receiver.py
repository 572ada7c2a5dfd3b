"""A shop that accepts USDT through Quittance. Python 3.9 or newer, standard library only: python3 receiver.py"""

import base64
import hashlib
import hmac
import json
import os
import re
import sqlite3
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

URL = os.environ["QUITTANCE_URL"]
API_KEY = os.environ["QUITTANCE_API_KEY"]
MAX_BODY_BYTES = 64 * 1024  # a webhook has less than 20 KB


def decode_secret(secret):
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith("whsec_") or not 24 <= len(key) <= 64:
        raise SystemExit("QUITTANCE_WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes")
    return key


KEY = decode_secret(os.environ["QUITTANCE_WEBHOOK_SECRET"])

# --- Creating an invoice


def place_order(order):
    external_id, amount = order.get("externalId"), order.get("amount")
    if not isinstance(external_id, str) or not isinstance(amount, str) or not 1 <= len(external_id) <= 200:
        return 400, {"error": "give externalId and amount as texts"}
    # Stored before Quittance is asked. The key is stored with it: asking again with it finds the same invoice.
    with closing(connect()) as db, db:
        db.execute(
            "insert into orders (external_id, amount, idempotency_key) values (?, ?, ?) on conflict do nothing",
            (external_id, amount, os.urandom(16).hex()),
        )
        stored, key = db.execute(
            "select amount, idempotency_key from orders where external_id = ?", (external_id,)
        ).fetchone()
    if stored != amount:
        return 409, {"error": "there is such an order with another amount"}
    invoice = create_invoice(external_id, amount, key)
    return 201, {"invoiceId": invoice["invoiceId"], "checkoutUrl": invoice["checkoutUrl"]}


def create_invoice(external_id, amount, key):
    body = json.dumps({"amount": amount, "asset": "USDT", "network": "TRON", "externalId": external_id}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    for pause in (0.5, 1, 2, None):
        # No answer, 429 and 5xx: the same key and the same bytes again, which never makes a second invoice.
        retry_after = "0"
        try:
            return ask_quittance("/v1/invoices", body, headers)
        except urllib.error.HTTPError as error:
            if pause is None or (error.code != 429 and error.code < 500):
                raise RuntimeError(f"Quittance: {error.code} {error.read(8192).decode(errors='replace')}") from None
            retry_after = error.headers.get("Retry-After", "0")
        except OSError:
            if pause is None:
                raise
        time.sleep(min(max(pause, int(retry_after) if retry_after.isdecimal() else 0), 5))


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # the key goes to no other place


OPENER = urllib.request.build_opener(NoRedirects)


def ask_quittance(path, body=None, headers=None):
    request = urllib.request.Request(URL + path, data=body, headers={**(headers or {}), "X-Api-Key": API_KEY})
    with OPENER.open(request, timeout=5) as response:
        return json.load(response)


# --- Receiving a webhook


def receive_webhook(headers, body):
    event_id = verify(headers, body)
    if event_id is None:
        return 400, {"error": "not a genuine webhook"}
    with closing(connect()) as db:
        if db.execute("select 1 from handled_events where id = ?", (event_id,)).fetchone():
            return 204, None
    event = json.loads(body)
    # Every other type is answered with 2xx too, also one that is not known yet.
    if event["type"] == "invoice.paid":
        # The event is a hint; what counts is what Quittance says now. If it cannot be asked, the event comes again.
        invoice = ask_quittance("/v1/invoices/" + urllib.parse.quote(event["data"]["invoiceId"], safe=""))
        if invoice["status"] == "PAID":
            fulfil_once(event_id, invoice["externalId"])
    return 204, None


def fulfil_once(event_id, external_id):
    """One transaction, of which one caller comes through. Only what is quick belongs here, for the answer must come
    within 15 s: mails and parcels are for a job that takes the paid orders."""
    with closing(connect()) as db, db:
        inserted = db.execute("insert into handled_events (id) values (?) on conflict do nothing", (event_id,))
        if inserted.rowcount == 1:
            db.execute(
                "update orders set state = 'paid', fulfilments = fulfilments + 1"
                " where external_id = ? and state = 'waiting'",
                (external_id,),
            )


def verify(headers, body):
    """The event's id if the request is genuine, else None. `body` is the raw bytes."""
    values = [headers.get_all(name, []) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")]
    if any(len(value) != 1 for value in values):
        return None
    (event_id,), (timestamp,), (signatures,) = values
    # [0-9] and not \d, which takes the digits of every script; fullmatch, because $ takes a newline.
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", event_id) or not re.fullmatch(r"[1-9][0-9]{0,11}", timestamp):
        return None
    if not re.fullmatch(r"v[0-9a-z]+,[A-Za-z0-9+/=]+( v[0-9a-z]+,[A-Za-z0-9+/=]+){0,15}", signatures):
        return None
    if abs(int(time.time()) - int(timestamp)) > 300:
        return None
    mac = hmac.new(KEY, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(mac).decode()
    is_genuine = any(hmac.compare_digest(given, expected) for given in signatures.split(" "))
    return event_id if is_genuine else None


# --- The store, which is durable and good for several processes; any SQL database takes the same statements


TABLES = """
create table if not exists orders (external_id text primary key, amount text not null, idempotency_key text not null,
  state text not null default 'waiting', fulfilments integer not null default 0);
create table if not exists handled_events (id text primary key);
"""


def connect():
    return sqlite3.connect("shop.sqlite", timeout=5)


def show_order(external_id):
    with closing(connect()) as db:
        row = db.execute("select state, fulfilments from orders where external_id = ?", (external_id,)).fetchone()
    return (200, {"state": row[0], "fulfilments": row[1]}) if row else (404, {"error": "no such order"})


# --- HTTP. In production your framework does this; take the body's bytes before it parses them.


class Handler(BaseHTTPRequestHandler):
    timeout = 15  # for a client that sends nothing

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MAX_BODY_BYTES:
            return self.answer(413 if length else 411, {"error": "the body must say its length, at most 64 KiB"})
        body = self.rfile.read(int(length))
        if self.path == "/hooks/quittance":
            return self.run(receive_webhook, self.headers, body)
        # In your shop, this requires a login, and the amount comes from your catalogue, never from the browser.
        if self.path == "/orders":
            return self.run(lambda: place_order(json.loads(body)))
        return self.answer(404, {"error": "not found"})

    def do_GET(self):
        if self.path.startswith("/orders/"):
            return self.run(show_order, urllib.parse.unquote(self.path[len("/orders/") :]))
        return self.answer(404, {"error": "not found"})

    def run(self, function, *arguments):
        try:
            status, body = function(*arguments)
        except Exception as error:  # Quittance sends the webhook again
            self.log_error("%s", error)
            status, body = 500, {"error": "internal"}
        self.answer(status, body)

    def answer(self, status, body):
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    with closing(connect()) as database:
        database.executescript(TABLES)
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
