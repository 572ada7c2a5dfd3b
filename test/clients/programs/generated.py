import sys

from openapi_client import ApiClient, ApiException, Configuration, CreateInvoice, EventsApi, InvoicesApi

url, key = sys.argv[1:]
api = InvoicesApi(ApiClient(Configuration(host=url, api_key={"apiKey": key})))
order = CreateInvoice(amount="25.00", asset="USDT", network="TRON", external_id="python-2")
created = api.create_invoice("python-2", order)
read = api.read_invoice(created.invoice_id, expand="payment")
invoices = api.find_invoices()
events = EventsApi(api.api_client).list_events()
try:
    api.read_invoice("inv_none")
except ApiException as refused:
    print(created.invoice_id, read.status, refused.status, len(invoices.data), len(events.data))
