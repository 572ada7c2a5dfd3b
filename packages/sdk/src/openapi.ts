// Generated from /openapi.json by `npm run sdk:types`. Do not edit: a test compares it with the API.

export interface paths {
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read your project's events, oldest first
         * @description Each event is byte for byte identical to the body of its webhook. Store the id of the last event that you handled, and send it as `after`. New events never appear before an event that you have read.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/invoices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find an invoice by your externalId, or list invoices
         * @description Without externalId: your project's invoices, oldest first. For the next page, send `next` as `after`, until `next` is null. A page may have fewer than `limit` items, or none, and still have a `next`.
         */
        get: operations["findInvoices"];
        put?: never;
        /** Create an invoice */
        post: operations["createInvoice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/invoices/{invoiceId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read an invoice */
        get: operations["readInvoice"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/invoices/{invoiceId}/withdraw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraw an invoice
         * @description The payment page no longer shows how to pay, and says that payment is cancelled. The status does not change: a payment that is under way, or arrives anyway, still pays the invoice. Withdrawing an invoice again changes nothing.
         */
        post: operations["withdrawInvoice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transfers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List transfers that paid no invoice, with the likeliest reason
         * @description Irreversible transfers to your project's addresses, oldest first. For the next page, send `next` as `after`, until `next` is null. Store the last id, and continue from there later.
         */
        get: operations["listTransfers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List a project's endpoints and their health, without their secrets */
        get: operations["listWebhookEndpoints"];
        put?: never;
        /** Add an endpoint and show its signing secret once */
        post: operations["createWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpointId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show an endpoint's health, its deliveries in the last 24 hours, and the fingerprints of its secrets */
        get: operations["readWebhookEndpoint"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change an endpoint's URL, description or event types */
        patch: operations["updateWebhookEndpoint"];
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpointId}/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop sending webhooks to an endpoint until it is enabled again */
        post: operations["disableWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpointId}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume deliveries to an endpoint, and send waiting events immediately */
        post: operations["enableWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpointId}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give an endpoint a new secret and show it once; for a limited time, Quittance also signs with the previous secret */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpointId}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a ping to an endpoint now and diagnose problems with its receiver */
        post: operations["testWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    "endpoint.disabled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * endpoint.disabled
         * @description Quittance stopped sending to another of your endpoints, because that endpoint failed for five days or returned 410. The feed contains its events.
         */
        post: operations["onEndpointDisabledEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "invoice.confirming": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * invoice.confirming
         * @description The payment is in a block that can still be orphaned. Do not fulfil the order yet.
         */
        post: operations["onInvoiceConfirmingEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "invoice.expired": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * invoice.expired
         * @description The deadline passed without payment. The invoice can still be paid.
         */
        post: operations["onInvoiceExpiredEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "invoice.paid": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * invoice.paid
         * @description The payment is irreversible.
         */
        post: operations["onInvoicePaidEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "invoice.pending": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * invoice.pending
         * @description The block with the payment was orphaned, so the invoice waits for payment again.
         */
        post: operations["onInvoicePendingEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    ping: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * ping
         * @description An event that the operator sends to test the endpoint. It does not concern an invoice.
         */
        post: operations["onPingEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "transfer.claimed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * transfer.claimed
         * @description The payer of an invoice looked up a transfer that paid no invoice, and so claimed it. This is not proof, because anyone with the invoice link can do it. The payment page does not ask for payment until the operator decides.
         */
        post: operations["onTransferClaimedEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "transfer.duplicate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * transfer.duplicate
         * @description A second transfer of exactly the payable amount of an invoice that is already paid.
         */
        post: operations["onTransferDuplicateEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "transfer.refunded": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * transfer.refunded
         * @description A transfer that paid no invoice was returned to its sender in full, and the refund is on the chain.
         */
        post: operations["onTransferRefundedEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "transfer.resolved": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * transfer.resolved
         * @description The operator resolved a transfer that paid no invoice. The newest resolution applies. No invoice changes its status. With `fulfilled-manually`, the named invoice's page stops asking for payment.
         */
        post: operations["onTransferResolvedEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "transfer.unmatched": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * transfer.unmatched
         * @description A transfer to one of your addresses matches no payable amount. The event has the likeliest reason at that time.
         */
        post: operations["onTransferUnmatchedEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        /**
         * AddressProof
         * @description Proof that the owner signed the address, if signed addresses are in use; only in responses of this API
         */
        AddressProof: {
            /** @description The signed data, as JSON */
            head: string;
            /** @example mainnet */
            network: string;
            /** @description The path from the address to the Merkle root in `head`: each step is L or R, followed by a SHA-256 hash */
            path: string[];
            projectId: string;
            signatures: {
                form: string;
                key: string;
                value: string;
            }[];
        };
        /** Claim */
        Claim: {
            /** Format: date-time */
            claimedAt: string;
            invoice: components["schemas"]["NamedInvoice"];
            /** @description Number of other invoices whose payers claimed this transfer */
            otherClaims: number;
        };
        /**
         * ConvertedPrice
         * @description The price that the invoice was created for; only in responses of this API
         */
        ConvertedPrice: {
            /**
             * @description Decimal string greater than 0
             * @example 19.99
             */
            amount: string;
            /** @example EUR */
            currency: string;
            /**
             * @description The price of one USDT in this currency
             * @example 0.921500
             */
            rate: string;
            /** @description The timestamp of the rate; null if the operator set it */
            rateAt: null | string;
            /** @description The origin that the rate was read from, or `fixed` */
            rateSource: string;
        };
        /** CreateInvoice */
        CreateInvoice: {
            /**
             * @description Decimal string greater than 0; required unless you send a price
             * @example 25.00
             */
            amount?: string;
            /** @constant */
            asset: "USDT";
            /**
             * @description One line about the purchase, shown to the payer
             * @example Two concert tickets
             */
            description?: string;
            /**
             * @description How long the payer can pay; the project's setting is the maximum and the default
             * @example 900
             */
            expiresInSeconds?: number;
            /** @example order-1001 */
            externalId: string;
            /**
             * @description Your own data about the invoice, which payers never see; at most 2,048 bytes as JSON
             * @example {
             *       "cart": "c-17"
             *     }
             */
            metadata?: {
                [key: string]: string;
            };
            /** @constant */
            network: "TRON";
            price?: components["schemas"]["Price"];
            /**
             * Format: uri-template
             * @description A return link that replaces the project's return link: an https:// URL on a site that the operator has allowed for the project, such as https://shop.example.com/orders/1001. {invoiceId} is a placeholder
             */
            returnUrl?: string;
        };
        /** CreateWebhookEndpoint */
        CreateWebhookEndpoint: {
            /** @description One line of at most 200 characters */
            description?: string;
            /**
             * @description Event types to send: `all`, or some of invoice.pending, invoice.confirming, invoice.paid, invoice.expired, transfer.unmatched, transfer.duplicate, transfer.refunded, transfer.claimed, transfer.resolved, endpoint.disabled, ping
             * @example [
             *       "invoice.paid"
             *     ]
             */
            events?: ("all" | "invoice.pending" | "invoice.confirming" | "invoice.paid" | "invoice.expired" | "transfer.unmatched" | "transfer.duplicate" | "transfer.refunded" | "transfer.claimed" | "transfer.resolved" | "endpoint.disabled" | "ping")[];
            /** @description Your own secret: `whsec_` and the base64 of 24 to 64 bytes (default: generated) */
            secret?: string;
            /**
             * @description https:// and a public address
             * @example https://shop.example.com/webhooks
             */
            url: string;
        };
        /** CreateWebhookEndpointAnswer */
        CreateWebhookEndpointAnswer: {
            description: string;
            endpointId: string;
            eventTypes: string[] | null;
            network: string;
            projectId: string;
            secret: string | null;
            url: string;
        };
        /** DisableWebhookEndpoint */
        DisableWebhookEndpoint: {
            /** @description Reason: one line of at most 200 characters */
            reason?: string;
        };
        /** DisableWebhookEndpointAnswer */
        DisableWebhookEndpointAnswer: {
            disabledReason: string;
            endpointId: string;
            /** @constant */
            status: "disabled";
        };
        /** EnableWebhookEndpointAnswer */
        EnableWebhookEndpointAnswer: {
            dead: number;
            disabledAt: string | null;
            disabledReason: string | null;
            endpointId: string;
            hastened: number;
            isMissedMore: boolean;
            missed: number;
            replay: string | null;
            /** @constant */
            status: "active";
        };
        /**
         * EndpointDisabledEvent
         * @description Quittance stopped sending to another of your endpoints, because that endpoint failed for five days or returned 410. The feed contains its events.
         */
        EndpointDisabledEvent: {
            data: {
                /** @description The operator's description of the endpoint; may be empty */
                description: string;
                /** Format: date-time */
                disabledAt: string;
                /** @example whe_01k2m9t0b3e8zr6v5x4c7d1f2g */
                endpointId: string;
                /** @description Scheme, host and port of the endpoint's URL */
                origin: string;
                /** @description The reason why the endpoint was disabled, as text */
                reason: string;
                /** @description Number of events waiting to be delivered to this endpoint */
                undelivered: number;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "endpoint.disabled";
        };
        /** EventPage */
        EventPage: {
            /** @description Oldest first. Later releases may add types: ignore types that you do not know. */
            data: (components["schemas"]["InvoiceConfirmingEvent"] | components["schemas"]["InvoicePendingEvent"] | components["schemas"]["InvoicePaidEvent"] | components["schemas"]["InvoiceExpiredEvent"] | components["schemas"]["TransferUnmatchedEvent"] | components["schemas"]["TransferDuplicateEvent"] | components["schemas"]["TransferRefundedEvent"] | components["schemas"]["TransferClaimedEvent"] | components["schemas"]["TransferResolvedEvent"] | components["schemas"]["EndpointDisabledEvent"] | components["schemas"]["PingEvent"])[];
            /** @description Whether more events follow this page; with `types`, whether more events follow `next` */
            hasMore: boolean;
            /** @description The id of the project's newest event, or null if it has none */
            latest: null | string;
            /** @description Only with `types`: the `after` value for the next page, which also skips events of other types */
            next?: null | string;
        };
        /** Invoice */
        Invoice: {
            /**
             * Format: uri
             * @description The payment page for the payer
             */
            checkoutUrl: string;
            /** Format: date-time */
            expiresAt: string;
            /** @description Your own id for the order attempt, as you sent it */
            externalId: string;
            /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
            invoiceId: string;
            /**
             * @description PENDING: waiting for the exact transfer. CONFIRMING: the transfer is in a block that is not yet irreversible. PAID: the transfer is irreversible; this status is final. EXPIRED: the deadline passed; the invoice can still be paid.
             * @enum {string}
             */
            status: "PENDING" | "CONFIRMING" | "EXPIRED" | "PAID";
        };
        /**
         * InvoiceConfirmingEvent
         * @description The payment is in a block that can still be orphaned. Do not fulfil the order yet.
         */
        InvoiceConfirmingEvent: {
            data: {
                /**
                 * Format: uri
                 * @description The payment page for the payer
                 */
                checkoutUrl: string;
                /**
                 * @description One line about the purchase, shown to the payer
                 * @example Two concert tickets
                 */
                description?: string;
                /** Format: date-time */
                expiresAt: string;
                /** @description Your own id for the order attempt, as you sent it */
                externalId: string;
                /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
                invoiceId: string;
                /**
                 * @description Your own data about the invoice, which payers never see; at most 2,048 bytes as JSON
                 * @example {
                 *       "cart": "c-17"
                 *     }
                 */
                metadata?: {
                    [key: string]: string;
                };
                payment: components["schemas"]["Payment"];
                /**
                 * Format: uri-template
                 * @description A return link that replaces the project's return link: an https:// URL on a site that the operator has allowed for the project, such as https://shop.example.com/orders/1001. {invoiceId} is a placeholder
                 */
                returnUrl?: string;
                /** @constant */
                status: "CONFIRMING";
                /**
                 * Format: date-time
                 * @description The time when you withdrew the invoice; present only in withdrawn invoices
                 */
                withdrawnAt?: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "invoice.confirming";
        };
        /**
         * InvoiceDetails
         * @description Members that Invoice does not have are present only if you request them with `expand`.
         */
        InvoiceDetails: {
            /**
             * Format: uri
             * @description The payment page for the payer
             */
            checkoutUrl: string;
            /**
             * @description One line about the purchase, shown to the payer
             * @example Two concert tickets
             */
            description?: string;
            /** Format: date-time */
            expiresAt: string;
            /** @description Your own id for the order attempt, as you sent it */
            externalId: string;
            /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
            invoiceId: string;
            /**
             * @description Your own data about the invoice, which payers never see; at most 2,048 bytes as JSON
             * @example {
             *       "cart": "c-17"
             *     }
             */
            metadata?: {
                [key: string]: string;
            };
            payment?: components["schemas"]["Payment"];
            /**
             * Format: uri-template
             * @description A return link that replaces the project's return link: an https:// URL on a site that the operator has allowed for the project, such as https://shop.example.com/orders/1001. {invoiceId} is a placeholder
             */
            returnUrl?: string;
            /**
             * @description PENDING: waiting for the exact transfer. CONFIRMING: the transfer is in a block that is not yet irreversible. PAID: the transfer is irreversible; this status is final. EXPIRED: the deadline passed; the invoice can still be paid.
             * @enum {string}
             */
            status: "PENDING" | "CONFIRMING" | "EXPIRED" | "PAID";
            /**
             * Format: date-time
             * @description The time when you withdrew the invoice; present only in withdrawn invoices
             */
            withdrawnAt?: string;
        };
        /**
         * InvoiceExpiredEvent
         * @description The deadline passed without payment. The invoice can still be paid.
         */
        InvoiceExpiredEvent: {
            data: {
                /**
                 * Format: uri
                 * @description The payment page for the payer
                 */
                checkoutUrl: string;
                /**
                 * @description One line about the purchase, shown to the payer
                 * @example Two concert tickets
                 */
                description?: string;
                /** Format: date-time */
                expiresAt: string;
                /** @description Your own id for the order attempt, as you sent it */
                externalId: string;
                /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
                invoiceId: string;
                /**
                 * @description Your own data about the invoice, which payers never see; at most 2,048 bytes as JSON
                 * @example {
                 *       "cart": "c-17"
                 *     }
                 */
                metadata?: {
                    [key: string]: string;
                };
                payment: components["schemas"]["Payment"];
                /**
                 * Format: uri-template
                 * @description A return link that replaces the project's return link: an https:// URL on a site that the operator has allowed for the project, such as https://shop.example.com/orders/1001. {invoiceId} is a placeholder
                 */
                returnUrl?: string;
                /** @constant */
                status: "EXPIRED";
                /**
                 * Format: date-time
                 * @description The time when you withdrew the invoice; present only in withdrawn invoices
                 */
                withdrawnAt?: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "invoice.expired";
        };
        /** InvoiceList */
        InvoiceList: {
            data: components["schemas"]["Invoice"][];
            /** @description The `after` value for the next page, or null on the last page; absent if you requested an externalId */
            next?: null | string;
        };
        /**
         * InvoicePaidEvent
         * @description The payment is irreversible.
         */
        InvoicePaidEvent: {
            data: {
                /**
                 * Format: uri
                 * @description The payment page for the payer
                 */
                checkoutUrl: string;
                /**
                 * @description One line about the purchase, shown to the payer
                 * @example Two concert tickets
                 */
                description?: string;
                /** Format: date-time */
                expiresAt: string;
                /** @description Your own id for the order attempt, as you sent it */
                externalId: string;
                /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
                invoiceId: string;
                /**
                 * @description Your own data about the invoice, which payers never see; at most 2,048 bytes as JSON
                 * @example {
                 *       "cart": "c-17"
                 *     }
                 */
                metadata?: {
                    [key: string]: string;
                };
                payment: components["schemas"]["PaidPayment"];
                /**
                 * Format: uri-template
                 * @description A return link that replaces the project's return link: an https:// URL on a site that the operator has allowed for the project, such as https://shop.example.com/orders/1001. {invoiceId} is a placeholder
                 */
                returnUrl?: string;
                /** @constant */
                status: "PAID";
                /**
                 * Format: date-time
                 * @description The time when you withdrew the invoice; present only in withdrawn invoices
                 */
                withdrawnAt?: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "invoice.paid";
        };
        /**
         * InvoicePendingEvent
         * @description The block with the payment was orphaned, so the invoice waits for payment again.
         */
        InvoicePendingEvent: {
            data: {
                /**
                 * Format: uri
                 * @description The payment page for the payer
                 */
                checkoutUrl: string;
                /**
                 * @description One line about the purchase, shown to the payer
                 * @example Two concert tickets
                 */
                description?: string;
                /** Format: date-time */
                expiresAt: string;
                /** @description Your own id for the order attempt, as you sent it */
                externalId: string;
                /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
                invoiceId: string;
                /**
                 * @description Your own data about the invoice, which payers never see; at most 2,048 bytes as JSON
                 * @example {
                 *       "cart": "c-17"
                 *     }
                 */
                metadata?: {
                    [key: string]: string;
                };
                payment: components["schemas"]["Payment"];
                /**
                 * Format: uri-template
                 * @description A return link that replaces the project's return link: an https:// URL on a site that the operator has allowed for the project, such as https://shop.example.com/orders/1001. {invoiceId} is a placeholder
                 */
                returnUrl?: string;
                /** @constant */
                status: "PENDING";
                /**
                 * Format: date-time
                 * @description The time when you withdrew the invoice; present only in withdrawn invoices
                 */
                withdrawnAt?: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "invoice.pending";
        };
        /** ListWebhookEndpointsAnswer */
        ListWebhookEndpointsAnswer: {
            data: {
                /** Format: date-time */
                createdAt: string;
                dead: number;
                description: string;
                disabledAt: string | null;
                disabledReason: string | null;
                endpointId: string;
                eventTypes: string[] | null;
                failingSince: string | null;
                isUndeliveredMore: boolean;
                lastAttempt: {
                    /** Format: date-time */
                    attemptedAt: string;
                    error: string | null;
                    latencyMs: number | null;
                    status: number | null;
                    webPage: string | null;
                } | null;
                network: string;
                pausedUntil: string | null;
                projectId: string;
                secrets: {
                    /** Format: date-time */
                    createdAt: string;
                    endsAt: string | null;
                }[];
                /** @enum {string} */
                status: "active" | "failing" | "paused" | "disabled";
                undelivered: number;
                url: string;
            }[];
        };
        /**
         * MismatchReason
         * @description The likeliest reason why the transfer paid no invoice. The reason is never certain. Later releases may add codes.
         */
        MismatchReason: {
            /** @enum {string} */
            code: "FEE_DEDUCTED" | "ROUNDED" | "TRUNCATED" | "ONE_DIGIT_WRONG" | "DIGITS_SWAPPED" | "DIGIT_MISSING" | "DIGIT_ADDED" | "POINT_MISPLACED" | "PAID_TWICE" | "REQUESTED_AMOUNT" | "SUM_OF_INVOICES" | "PART_OF_INVOICE" | "OTHER_ADDRESS" | "OVERPAID" | "DUST" | "LOOK_ALIKE_SENDER" | "OWN_DEPOSIT" | "SELF_TRANSFER" | "UNKNOWN";
            /** @enum {string} */
            confidence: "high" | "medium" | "low";
        };
        /** NamedInvoice */
        NamedInvoice: {
            externalId: string;
            invoiceId: string;
            /** @enum {string} */
            status: "PENDING" | "CONFIRMING" | "EXPIRED" | "PAID";
        };
        /** PaidPayment */
        PaidPayment: {
            address: string;
            /** @example 25.000137 */
            payableAmount: string;
            /** @example 25.000000 */
            requestedAmount: string;
            transaction: components["schemas"]["PaymentTransaction"];
        };
        /** Payment */
        Payment: {
            address: string;
            addressProof?: components["schemas"]["AddressProof"];
            /** @example 25.000137 */
            payableAmount: string;
            price?: components["schemas"]["ConvertedPrice"];
            /** @example 25.000000 */
            requestedAmount: string;
            transaction: null | components["schemas"]["PaymentTransaction"];
        };
        /** PaymentTransaction */
        PaymentTransaction: {
            amount: string;
            blockNumber: number;
            /** Format: date-time */
            blockTime: string;
            confirmations: number;
            from: string;
            /** @description Whether the block is after expiresAt */
            late: boolean;
            logIndex: number;
            txId: string;
        };
        /**
         * PingEvent
         * @description An event that the operator sends to test the endpoint. It does not concern an invoice.
         */
        PingEvent: {
            data: {
                /** @example whe_01k2m9t0b3e8zr6v5x4c7d1f2g */
                endpointId: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "ping";
        };
        /**
         * Price
         * @description Use this instead of `amount` for a price in another currency, if the operator has set a rate for that currency
         */
        Price: {
            /**
             * @description Decimal string greater than 0
             * @example 19.99
             */
            amount: string;
            /** @example EUR */
            currency: string;
        };
        /**
         * Problem
         * @description RFC 9457
         */
        Problem: {
            /** @enum {string} */
            code: "INVALID_JSON" | "INVALID_REQUEST" | "IDEMPOTENCY_KEY_REQUIRED" | "IDEMPOTENCY_KEY_INVALID" | "UNAUTHENTICATED" | "INSUFFICIENT_SCOPE" | "INVOICE_NOT_FOUND" | "ENDPOINT_NOT_FOUND" | "ROUTE_NOT_FOUND" | "METHOD_NOT_ALLOWED" | "PAYLOAD_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE" | "IDEMPOTENCY_CONFLICT" | "AMOUNT_UNAVAILABLE" | "PROJECT_ARCHIVED" | "INVOICE_PAID" | "ENDPOINT_CONFLICT" | "UNSUPPORTED_ASSET" | "UNSUPPORTED_NETWORK" | "RATE_LIMITED" | "TOO_MANY_UNPAID" | "INTERNAL" | "UNAVAILABLE" | "INTEGRITY" | "RATE_UNAVAILABLE" | "OVERLOADED";
            /** @enum {string} */
            conflict?: "idempotencyKey" | "externalId";
            detail: string;
            errors?: {
                code: string;
                field: string;
                message: string;
            }[];
            fields?: string[];
            invoiceId?: string;
            requestId: string;
            /** @enum {string} */
            scope?: "create" | "read" | "events" | "webhooks";
            status: number;
            supported?: string[];
            title: string;
            /** Format: uri */
            type: string;
        };
        /** ReadWebhookEndpointAnswer */
        ReadWebhookEndpointAnswer: {
            /** Format: date-time */
            createdAt: string;
            day: {
                dead: number;
                delivered: number;
                isSample: boolean;
                looked: number;
                waiting: number;
            };
            dead: number;
            description: string;
            disabledAt: string | null;
            disabledReason: string | null;
            endpointId: string;
            eventTypes: string[] | null;
            failingSince: string | null;
            isUndeliveredMore: boolean;
            lastAttempt: {
                /** Format: date-time */
                attemptedAt: string;
                error: string | null;
                latencyMs: number | null;
                status: number | null;
                webPage: string | null;
            } | null;
            network: string;
            oldestUndelivered: string | null;
            pausedUntil: string | null;
            projectId: string;
            secrets: {
                /** Format: date-time */
                createdAt: string;
                endsAt: string | null;
                fingerprint: string | null;
            }[];
            /** @enum {string} */
            status: "active" | "failing" | "paused" | "disabled";
            undelivered: number;
            url: string;
        };
        /** Refund */
        Refund: {
            /** @example 24.000000 */
            amount: string;
            blockNumber: number;
            /** Format: date-time */
            blockTime: string;
            /** @description Your address that sent the refund */
            from: string;
            logIndex: number;
            /** @description The sender of the original transfer */
            to: string;
            txId: string;
        };
        /** Resolution */
        Resolution: {
            /** @description The invoice that the operator selected for this money, with its status at that time, or null */
            invoice: null | components["schemas"]["NamedInvoice"];
            /**
             * @description Older events can contain `credited-outside`, which means `fulfilled-manually`, and `ignored`, which means `kept`.
             * @enum {string}
             */
            kind: "refunded" | "fulfilled-manually" | "own-deposit" | "kept" | "credited-outside" | "ignored";
            /** Format: date-time */
            resolvedAt: string;
        };
        /** RotateWebhookSecret */
        RotateWebhookSecret: {
            /** @description Time for which Quittance also signs with the previous secret, `0` to `30d` (default: `24h`) */
            overlap?: string;
            /** @description Your own secret: `whsec_` and the base64 of 24 to 64 bytes (default: generated) */
            secret?: string;
        };
        /** RotateWebhookSecretAnswer */
        RotateWebhookSecretAnswer: {
            endpointId: string;
            /** Format: date-time */
            formerSecretEndsAt: string;
            isFormerSecretLost: boolean;
            secret: string | null;
        };
        /** TestWebhookEndpointAnswer */
        TestWebhookEndpointAnswer: {
            answer: string | null;
            /** Format: date-time */
            attemptedAt: string;
            diagnosis: {
                /** @enum {string} */
                certainty: "proven" | "likely";
                code: string;
                fix: string;
                problem: string;
            }[];
            /** @enum {string} */
            dns: "ok" | "failed" | "unknown" | "not used";
            endpointId: string;
            error: string | null;
            eventId: string;
            isDelivered: boolean;
            latencyMs: number | null;
            status: number | null;
            /** @enum {string} */
            tls: "ok" | "failed" | "unknown" | "not used";
            webPage: string | null;
        };
        /** Transfer */
        Transfer: {
            /** @example 25.000137 */
            amount: string;
            blockNumber: number;
            /** Format: date-time */
            blockTime: string;
            /** @description Invoices whose payers looked up this transfer and thus claimed it. This is not proof: let a person decide. */
            claimedBy: components["schemas"]["NamedInvoice"][];
            from: string;
            /** @description The invoice that the transfer paid, or would have paid if it is a duplicate */
            invoice: null | components["schemas"]["NamedInvoice"];
            /**
             * @description unmatched: matches no payable amount. duplicate: matches an invoice that was already paid. matched: paid an invoice.
             * @enum {string}
             */
            kind: "unmatched" | "duplicate" | "matched";
            logIndex: number;
            /** @description The invoice that the transfer was probably meant for, according to that reason, but did not pay. Let a person decide. */
            nearestInvoice: null | components["schemas"]["NamedInvoice"];
            reason: null | components["schemas"]["MismatchReason"];
            /** @description The transfer that returned the full amount to the sender, as recorded in the ledger */
            refund: null | components["schemas"]["Refund"];
            to: string;
            /** @example trf_01k2m9t0b3e8zr6v5x4c7d1f2g */
            transferId: string;
            txId: string;
        };
        /**
         * TransferClaimedEvent
         * @description The payer of an invoice looked up a transfer that paid no invoice, and so claimed it. This is not proof, because anyone with the invoice link can do it. The payment page does not ask for payment until the operator decides.
         */
        TransferClaimedEvent: {
            data: {
                /** @example 25.000137 */
                amount: string;
                blockNumber: number;
                /** Format: date-time */
                blockTime: string;
                claim: components["schemas"]["Claim"];
                from: string;
                logIndex: number;
                /** @description The invoice that the transfer was probably meant for, according to that reason, but did not pay. Let a person decide. */
                nearestInvoice: null | components["schemas"]["NamedInvoice"];
                reason: null | components["schemas"]["MismatchReason"];
                to: string;
                /** @example trf_01k2m9t0b3e8zr6v5x4c7d1f2g */
                transferId: string;
                txId: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "transfer.claimed";
        };
        /**
         * TransferDuplicateEvent
         * @description A second transfer of exactly the payable amount of an invoice that is already paid.
         */
        TransferDuplicateEvent: {
            data: {
                /** @example 25.000137 */
                amount: string;
                blockNumber: number;
                /** Format: date-time */
                blockTime: string;
                from: string;
                /** @description The invoice that was already paid */
                invoiceId: string;
                logIndex: number;
                /** @description The invoice that the transfer was probably meant for, according to that reason, but did not pay. Let a person decide. */
                nearestInvoice?: null | components["schemas"]["NamedInvoice"];
                reason?: null | components["schemas"]["MismatchReason"];
                to: string;
                /** @example trf_01k2m9t0b3e8zr6v5x4c7d1f2g */
                transferId: string;
                txId: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "transfer.duplicate";
        };
        /** TransferList */
        TransferList: {
            data: components["schemas"]["Transfer"][];
            next: null | string;
        };
        /**
         * TransferRefundedEvent
         * @description A transfer that paid no invoice was returned to its sender in full, and the refund is on the chain.
         */
        TransferRefundedEvent: {
            data: {
                /** @example 25.000137 */
                amount: string;
                blockNumber: number;
                /** Format: date-time */
                blockTime: string;
                from: string;
                /** @description For a duplicate: the invoice that was already paid */
                invoiceId?: string;
                logIndex: number;
                refund: components["schemas"]["Refund"];
                to: string;
                /** @example trf_01k2m9t0b3e8zr6v5x4c7d1f2g */
                transferId: string;
                txId: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "transfer.refunded";
        };
        /**
         * TransferResolvedEvent
         * @description The operator resolved a transfer that paid no invoice. The newest resolution applies. No invoice changes its status. With `fulfilled-manually`, the named invoice's page stops asking for payment.
         */
        TransferResolvedEvent: {
            data: {
                /** @example 25.000137 */
                amount: string;
                blockNumber: number;
                /** Format: date-time */
                blockTime: string;
                from: string;
                /** @description For a duplicate: the invoice that was already paid */
                invoiceId?: string;
                logIndex: number;
                resolution: components["schemas"]["Resolution"];
                to: string;
                /** @example trf_01k2m9t0b3e8zr6v5x4c7d1f2g */
                transferId: string;
                txId: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "transfer.resolved";
        };
        /**
         * TransferUnmatchedEvent
         * @description A transfer to one of your addresses matches no payable amount. The event has the likeliest reason at that time.
         */
        TransferUnmatchedEvent: {
            data: {
                /** @example 25.000137 */
                amount: string;
                blockNumber: number;
                /** Format: date-time */
                blockTime: string;
                from: string;
                logIndex: number;
                /** @description The invoice that the transfer was probably meant for, according to that reason, but did not pay. Let a person decide. */
                nearestInvoice?: null | components["schemas"]["NamedInvoice"];
                reason?: null | components["schemas"]["MismatchReason"];
                to: string;
                /** @example trf_01k2m9t0b3e8zr6v5x4c7d1f2g */
                transferId: string;
                txId: string;
            };
            /**
             * @description Equals the webhook-id header; use it to deduplicate events
             * @example evt_01k2m9t0b3e8zr6v5x4c7d1f2g
             */
            id: string;
            /** @enum {string} */
            network: "TRON";
            projectId: string;
            /** @description The event's number within its invoice, without gaps; 1 for an event without an invoice */
            sequence: number;
            /** Format: date-time */
            timestamp: string;
            /** @constant */
            type: "transfer.unmatched";
        };
        /** UpdateWebhookEndpoint */
        UpdateWebhookEndpoint: {
            /** @description One line of at most 200 characters */
            description?: string;
            /**
             * @description Event types to send: `all`, or some of invoice.pending, invoice.confirming, invoice.paid, invoice.expired, transfer.unmatched, transfer.duplicate, transfer.refunded, transfer.claimed, transfer.resolved, endpoint.disabled, ping
             * @example [
             *       "invoice.paid"
             *     ]
             */
            events?: ("all" | "invoice.pending" | "invoice.confirming" | "invoice.paid" | "invoice.expired" | "transfer.unmatched" | "transfer.duplicate" | "transfer.refunded" | "transfer.claimed" | "transfer.resolved" | "endpoint.disabled" | "ping")[];
            /** @description https:// and a public address */
            url?: string;
        };
        /** UpdateWebhookEndpointAnswer */
        UpdateWebhookEndpointAnswer: {
            /** Format: date-time */
            createdAt: string;
            description: string;
            disabledAt: string | null;
            disabledReason: string | null;
            endpointId: string;
            eventTypes: string[] | null;
            failingSince: string | null;
            network: string;
            pausedUntil: string | null;
            projectId: string;
            /** @enum {string} */
            status: "active" | "failing" | "paused" | "disabled";
            url: string;
        };
        /** WithdrawnInvoice */
        WithdrawnInvoice: {
            /**
             * Format: uri
             * @description The payment page for the payer
             */
            checkoutUrl: string;
            /** Format: date-time */
            expiresAt: string;
            /** @description Your own id for the order attempt, as you sent it */
            externalId: string;
            /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
            invoiceId: string;
            /**
             * @description PENDING: waiting for the exact transfer. CONFIRMING: the transfer is in a block that is not yet irreversible. PAID: the transfer is irreversible; this status is final. EXPIRED: the deadline passed; the invoice can still be paid.
             * @enum {string}
             */
            status: "PENDING" | "CONFIRMING" | "EXPIRED" | "PAID";
            /**
             * Format: date-time
             * @description The time when you withdrew the invoice; present only in withdrawn invoices
             */
            withdrawnAt: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description The invoice was created by an earlier request with this Idempotency-Key */
        "Idempotent-Replayed": "true";
        /** @description The path of the created resource */
        Location: string;
        /** @description The rate limit that was reached (draft-ietf-httpapi-ratelimit-headers) */
        RateLimit: string;
        /** @description That limit */
        "RateLimit-Policy": string;
        /** @description Seconds */
        "Retry-After": number;
        /** @description The header that must carry the key */
        "WWW-Authenticate": string;
        /** @description Identifies this response in the service's log; give it to the operator */
        "X-Request-Id": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listEvents: {
        parameters: {
            query?: {
                /** @description Return only events after this one (default: from the first). */
                after?: string;
                /** @example 100 */
                limit?: number;
                /** @description Only events of these types, such as `invoice.paid,transfer.unmatched`. The response then contains `next`: send it as `after`. */
                types?: ("invoice.pending" | "invoice.confirming" | "invoice.paid" | "invoice.expired" | "transfer.unmatched" | "transfer.duplicate" | "transfer.refunded" | "transfer.claimed" | "transfer.resolved" | "endpoint.disabled" | "ping")[];
                /** @description Seconds to wait for an event before returning an empty page. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventPage"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    findInvoices: {
        parameters: {
            query?: {
                /** @description The `next` value from the previous page */
                after?: string;
                /** @description Return only invoices created at this time or later */
                createdAfter?: string;
                /**
                 * @description Cannot be combined with other parameters except `limit`
                 * @example order-1001
                 */
                externalId?: string;
                limit?: number;
                status?: "PENDING" | "CONFIRMING" | "EXPIRED" | "PAID";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvoiceList"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createInvoice: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description A key that you choose and store for this order attempt; a retry with the same key and body returns the same invoice
                 * @example order-1001
                 */
                "Idempotency-Key": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateInvoice"];
            };
        };
        responses: {
            /** @description Default Response */
            201: {
                headers: {
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description IDEMPOTENCY_CONFLICT, AMOUNT_UNAVAILABLE, PROJECT_ARCHIVED, INVOICE_PAID */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description PAYLOAD_TOO_LARGE */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_MEDIA_TYPE */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_ASSET, UNSUPPORTED_NETWORK */
            422: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED, TOO_MANY_UNPAID */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, RATE_UNAVAILABLE, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readInvoice: {
        parameters: {
            query?: {
                /**
                 * @description `payment` adds `payment`, and `withdrawnAt` if you withdrew the invoice; `metadata` adds `metadata`, `description` and `returnUrl`
                 * @example payment
                 */
                expand?: string;
            };
            header?: never;
            path: {
                /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
                invoiceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Members that Invoice does not have are present only if you request them with `expand`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvoiceDetails"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INVOICE_NOT_FOUND, ROUTE_NOT_FOUND */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    withdrawInvoice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example inv_01k2m9t0b3e8zr6v5x4c7d1f2g */
                invoiceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WithdrawnInvoice"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INVOICE_NOT_FOUND, ROUTE_NOT_FOUND */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description IDEMPOTENCY_CONFLICT, AMOUNT_UNAVAILABLE, PROJECT_ARCHIVED, INVOICE_PAID */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description PAYLOAD_TOO_LARGE */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_MEDIA_TYPE */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listTransfers: {
        parameters: {
            query?: {
                /** @description The `next` value from the previous page */
                after?: string;
                /** @description Default: unmatched and duplicate */
                kind?: "unmatched" | "duplicate" | "matched";
                /** @example 100 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransferList"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listWebhookEndpoints: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListWebhookEndpointsAnswer"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWebhookEndpoint"];
            };
        };
        responses: {
            /** @description Default Response */
            201: {
                headers: {
                    Location: components["headers"]["Location"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateWebhookEndpointAnswer"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_CONFLICT */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description PAYLOAD_TOO_LARGE */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_MEDIA_TYPE */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example whe_01k2m9t0b3e8zr6v5x4c7d1f2g */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadWebhookEndpointAnswer"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_NOT_FOUND */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    updateWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example whe_01k2m9t0b3e8zr6v5x4c7d1f2g */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateWebhookEndpoint"];
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UpdateWebhookEndpointAnswer"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_NOT_FOUND */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_CONFLICT */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description PAYLOAD_TOO_LARGE */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_MEDIA_TYPE */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    disableWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example whe_01k2m9t0b3e8zr6v5x4c7d1f2g */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DisableWebhookEndpoint"];
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DisableWebhookEndpointAnswer"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_NOT_FOUND */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_CONFLICT */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description PAYLOAD_TOO_LARGE */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_MEDIA_TYPE */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    enableWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example whe_01k2m9t0b3e8zr6v5x4c7d1f2g */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnableWebhookEndpointAnswer"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_NOT_FOUND */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_CONFLICT */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description PAYLOAD_TOO_LARGE */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_MEDIA_TYPE */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example whe_01k2m9t0b3e8zr6v5x4c7d1f2g */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateWebhookSecret"];
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RotateWebhookSecretAnswer"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_NOT_FOUND */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_CONFLICT */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description PAYLOAD_TOO_LARGE */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_MEDIA_TYPE */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    testWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example whe_01k2m9t0b3e8zr6v5x4c7d1f2g */
                endpointId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TestWebhookEndpointAnswer"];
                };
            };
            /** @description INVALID_JSON, INVALID_REQUEST, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_KEY_INVALID */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAUTHENTICATED */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INSUFFICIENT_SCOPE */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_NOT_FOUND */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description ENDPOINT_CONFLICT */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description PAYLOAD_TOO_LARGE */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNSUPPORTED_MEDIA_TYPE */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description RATE_LIMITED */
            429: {
                headers: {
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description INTERNAL */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description UNAVAILABLE, INTEGRITY, OVERLOADED */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    onEndpointDisabledEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EndpointDisabledEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onInvoiceConfirmingEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InvoiceConfirmingEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onInvoiceExpiredEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InvoiceExpiredEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onInvoicePaidEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InvoicePaidEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onInvoicePendingEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InvoicePendingEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onPingEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PingEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onTransferClaimedEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TransferClaimedEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onTransferDuplicateEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TransferDuplicateEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onTransferRefundedEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TransferRefundedEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onTransferResolvedEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TransferResolvedEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onTransferUnmatchedEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id, the same on every attempt; deduplicate by it */
                "webhook-id": string;
                /** @description The version of this protocol */
                "webhook-protocol": "v2";
                /** @description "v1," and base64 of HMAC-SHA256 over "{webhook-id}.{webhook-timestamp}.{raw body}"; several signatures are separated by spaces, and one valid signature is enough */
                "webhook-signature": string;
                /** @description The time of this attempt in Unix seconds; reject a time more than 5 minutes from your clock */
                "webhook-timestamp": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TransferUnmatchedEvent"];
            };
        };
        responses: {
            /** @description Received. Quittance retries after any other status, or if no response arrives within 15 s. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
