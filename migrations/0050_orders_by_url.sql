-- A shop may give each order its own callback URL. This finds the orders of a URL, which may be too long for an index itself.
create index adapter_orders_url on adapter_orders (endpoint_id, hashtextextended(notify_url, 0));
