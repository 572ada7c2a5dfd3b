import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.EventsApi;
import org.openapitools.client.api.InvoicesApi;
import org.openapitools.client.model.CreateInvoice;
import org.openapitools.client.model.Invoice;
import org.openapitools.client.model.InvoiceDetails;

public final class Main {
    public static void main(String[] given) throws ApiException {
        ApiClient client = new ApiClient().setBasePath(given[0]);
        client.setApiKey(given[1]);
        InvoicesApi api = new InvoicesApi(client);
        CreateInvoice order = new CreateInvoice()
            .amount("25.00")
            .asset(CreateInvoice.AssetEnum.USDT)
            .network(CreateInvoice.NetworkEnum.TRON)
            .externalId("java-1");
        Invoice created = api.createInvoice("java-1", order);
        InvoiceDetails read = api.readInvoice(created.getInvoiceId(), "payment");
        int invoices = api.findInvoices(null, null, null, null, null).getData().size();
        int events = new EventsApi(client).listEvents(null, null, null, null).getData().size();
        try {
            api.readInvoice("inv_none", null);
        } catch (ApiException refused) {
            String what = created.getInvoiceId() + " " + read.getStatus() + " " + refused.getCode();
            System.out.println(what + " " + invoices + " " + events);
        }
    }
}
