package main

import (
	"context"
	"fmt"
	"os"

	quittance "github.com/example/api"
)

func main() {
	configuration := quittance.NewConfiguration()
	configuration.Servers = quittance.ServerConfigurations{{URL: os.Args[1]}}
	keys := map[string]quittance.APIKey{"apiKey": {Key: os.Args[2]}}
	ctx := context.WithValue(context.Background(), quittance.ContextAPIKeys, keys)
	api := quittance.NewAPIClient(configuration).InvoicesAPI
	order := *quittance.NewCreateInvoice("USDT", "TRON", "go-1")
	order.SetAmount("25.00")
	created, _, err := api.CreateInvoice(ctx).IdempotencyKey("go-1").CreateInvoice(order).Execute()
	if err != nil {
		panic(err)
	}
	read, _, err := api.ReadInvoice(ctx, created.InvoiceId).Expand("payment").Execute()
	if err != nil {
		panic(err)
	}
	_, answer, _ := api.ReadInvoice(ctx, "inv_none").Execute()
	invoices, _, err := api.FindInvoices(ctx).Execute()
	if err != nil {
		panic(err)
	}
	events, _, err := quittance.NewAPIClient(configuration).EventsAPI.ListEvents(ctx).Execute()
	if err != nil {
		panic(err)
	}
	fmt.Println(created.InvoiceId, read.Status, answer.StatusCode, len(invoices.Data), len(events.Data))
}
