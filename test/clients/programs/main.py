import sys

folder, url, key = sys.argv[1:]
sys.path.insert(0, folder)

from quittance_api.client import Client
from quittance_api.api.events import list_events
from quittance_api.api.invoices import create_invoice, find_invoices, read_invoice
from quittance_api.models import CreateInvoice

client = Client(base_url=url, headers={"X-Api-Key": key})
order = CreateInvoice(amount="25.00", asset="USDT", network="TRON", external_id="python-1")
created = create_invoice.sync(client=client, body=order, idempotency_key="python-1")
read = read_invoice.sync(created.invoice_id, client=client, expand="payment")
refused = read_invoice.sync("inv_none", client=client)
invoices = find_invoices.sync(client=client)
events = list_events.sync(client=client)
print(created.invoice_id, read.status, refused.code, len(invoices.data), len(events.data))
