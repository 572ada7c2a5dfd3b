# `ruby main.rb <folder of the client> <URL> <key>`, with Typhoeus.
folder, url, key = ARGV
$LOAD_PATH.unshift "#{folder}/lib"
require 'openapi_client'

client = OpenapiClient::ApiClient.new(OpenapiClient::Configuration.new do |configuration|
  configuration.scheme, configuration.host = url.split('://')
  configuration.server_index = nil
  configuration.api_key['X-Api-Key'] = key
end)
api = OpenapiClient::InvoicesApi.new(client)
order = OpenapiClient::CreateInvoice.new(amount: '25.00', asset: 'USDT', network: 'TRON', external_id: 'ruby-1')
created = api.create_invoice('ruby-1', order)
read = api.read_invoice(created.invoice_id, expand: 'payment')
invoices = api.find_invoices.data.size
events = OpenapiClient::EventsApi.new(client).list_events.data.size
begin
  api.read_invoice('inv_none')
rescue OpenapiClient::ApiError => refused
  puts "#{created.invoice_id} #{read.status} #{refused.code} #{invoices} #{events}"
end
