<?php

declare(strict_types=1);

defined('ABSPATH') || exit;

/**
 * What becomes of orders. A webhook, and an event of the feed, are only the occasion: what counts is the invoice as it is read then, while the
 * order is locked, so that two requests never decide at once.
 */
final class Quittance_Orders
{
    public const EVENTS_AFTER = 'quittance_events_after';
    public const TRANSFERS_AFTER = 'quittance_transfers_after';
    /** The currency for which Quittance had no rate, for the notice to the shopkeeper. */
    public const NO_RATE = 'quittance_no_rate';
    /** Every invoice that was asked for: list of {externalId, amount, currency, invoiceId or ''}. */
    private const ATTEMPTS = '_quittance_attempts';
    /** What an order has a note about already. */
    private const NOTED = '_quittance_noted';
    /** The transfers that were noted, a row each, by which a refund finds the order. */
    private const TRANSFER = '_quittance_transfer';
    /** Totals that change, and invoices that expire, more often than this are no purchase. */
    private const MAX_ATTEMPTS = 50;
    private const PAGES_A_SWEEP = 10;
    private const LOCK_SECONDS = 8;
    /** One every five minutes for a day. By then, the invoice has usually expired. */
    private const WITHDRAWALS = 288;
    private const EVENTS = 'invoice.confirming,invoice.paid,invoice.pending,invoice.expired,transfer.refunded';

    /** @var \Quittance\Client */
    private $client;

    private function __construct(\Quittance\Client $client)
    {
        $this->client = $client;
    }

    /** Throws an \InvalidArgumentException where the settings are not complete. */
    public static function of_settings(): self
    {
        $settings = self::settings();
        // A payer waits for the answer, and a webhook has 15 s.
        $patience = ['timeoutSeconds' => 4, 'maxRetries' => 1, 'maxWaitSeconds' => 2];
        return new self(new \Quittance\Client($settings['url'], $settings['api_key'], $patience));
    }

    public static function webhook_secrets(): array
    {
        return preg_split('/\s+/', trim(self::settings()['webhook_secret']), 9) ?: [];
    }

    public static function settings(): array
    {
        $defaults = array_fill_keys(['enabled', 'url', 'api_key', 'webhook_secret', 'usd_is_usdt'], '');
        $stored = get_option('woocommerce_quittance_settings');
        return array_map('strval', array_merge($defaults, array_intersect_key(is_array($stored) ? $stored : [], $defaults)));
    }

    public static function takes_currency(string $currency): bool
    {
        if ($currency === 'USD') {
            return self::settings()['usd_is_usdt'] === 'yes';
        }
        return preg_match('/\A[A-Z]{3,5}\z/', $currency) === 1;
    }

    /** Whether Quittance converts the currency. Amounts in USDT, and in USD where a setting allows it, are asked for as they are. */
    private static function is_priced(string $currency): bool
    {
        return !in_array($currency, ['USD', 'USDT'], true);
    }

    /** Trying again does not help then: the operator of the server has to set a rate. */
    public static function lacks_rate(\Throwable $error): bool
    {
        return $error instanceof \Quittance\ApiException && in_array('NO_RATE', array_column($error->errors, 'code'), true);
    }

    public static function log(string $message): void
    {
        wc_get_logger()->error($message, ['source' => 'quittance']);
    }

    /**
     * Where the payer goes. However often this is called, an order at an amount has one page that can be paid: id and key of an attempt follow
     * from the order, are stored before the first request, and are used again until the total changes, or the invoice expires or is withdrawn.
     */
    public function start(int $order_id): string
    {
        return self::locked("order-$order_id", function () use ($order_id): string {
            $order = self::load($order_id);
            $amount = $order === null ? null : self::amount($order->get_total('edit'));
            if ($order === null || $amount === null || !self::takes_currency($order->get_currency())) {
                throw new \RuntimeException("order $order_id has no total in a currency that Quittance accepts");
            }
            if ($order->is_paid()) {
                return $order->get_checkout_order_received_url();
            }
            $this->begin_feed();
            $attempts = self::attempts($order);
            $count = count($attempts);
            $last = $count > 0 ? $attempts[$count - 1] : null;
            $isWanted = $last !== null && $last['amount'] === $amount && $last['currency'] === $order->get_currency();
            // An attempt that got no invoice is repeated only while it is wanted: its currency may have no rate.
            if ($last !== null && ($isWanted || $last['invoiceId'] !== '' || $this->client->findInvoice($last['externalId']) !== null)) {
                $invoice = $this->ask($order, $attempts, $count - 1);
                if ($invoice['status'] === 'PAID') {
                    $this->apply($order, $this->client->getInvoice($invoice['invoiceId'], true));
                    return $order->get_checkout_order_received_url();
                }
                $isSame = $isWanted && !isset($last['isWithdrawn']);
                // What is being paid at this moment is waited for, also where the total is another one by now.
                if ($invoice['status'] === 'CONFIRMING' || ($isSame && $invoice['status'] === 'PENDING')) {
                    return $invoice['checkoutUrl'];
                }
                $this->client->withdrawInvoice($invoice['invoiceId']);
            }
            $attempts[] = self::next_attempt($order, $amount, $count + 1);
            return $this->ask($order, $attempts, $count)['checkoutUrl'];
        });
    }

    /** Whether the order's customer may have seen an address. */
    public static function has_invoice(int $order_id): bool
    {
        $order = self::load($order_id);
        return $order !== null && array_filter(array_column(self::attempts($order), 'invoiceId')) !== [];
    }

    /** What an event is the occasion for; unknown types are none. Throws where it shall be tried again. */
    public function handle(array $event): void
    {
        $type = self::text($event, 'type');
        $data = (array) ($event['data'] ?? []);
        if (strncmp($type, 'invoice.', 8) === 0) {
            $this->refresh(self::text($data, 'externalId'), self::text($data, 'invoiceId'), $type === 'invoice.pending');
        } elseif ($type === 'transfer.refunded') {
            $this->note_refund($data);
        } elseif ($type === 'transfer.unmatched' || $type === 'transfer.duplicate') {
            $this->sweep_transfers();
        }
    }

    /** Reads what webhooks may not have told, for a bounded time: the rest is read the next time. One at a time. */
    public function sweep(): void
    {
        $this->sweep_events();
        $this->sweep_transfers();
    }

    /** Withdraws in a job, because the request of another payment method must not wait for the server. Two hooks in a row make one job. */
    public static function withdraw_soon($order_id): void
    {
        $order = wc_get_order($order_id);
        if ($order instanceof WC_Order && self::attempts($order) !== []) {
            wp_schedule_single_event(time(), QUITTANCE_WITHDRAW, [$order->get_id(), 0]);
        }
    }

    /**
     * The page of an order that is cancelled or paid no longer asks for payment. The plugin still notices a payment that arrives anyway.
     * If the server can't be reached, it tries again every five minutes, for a day.
     */
    public function withdraw(int $order_id, int $tries): void
    {
        try {
            self::on_order($order_id, function (?WC_Order $order): void {
                // An order that was opened again in the meantime has another page.
                if ($order === null || !($order->has_status('cancelled') || $order->is_paid())) {
                    return;
                }
                // Marked, so that an order that is opened again gets another page.
                $mark = static fn(array $attempt): array => ['isWithdrawn' => 'yes'] + $attempt;
                $attempts = array_map($mark, self::attempts($order));
                $attempts === [] || self::store($order, self::ATTEMPTS, $attempts);
                foreach (array_filter(array_column($attempts, 'invoiceId')) as $invoice_id) {
                    $this->withdraw_invoice($invoice_id);
                }
            });
        } catch (\Quittance\ApiException $error) {
            if ($tries < self::WITHDRAWALS) {
                wp_schedule_single_event(time() + 300, QUITTANCE_WITHDRAW, [$order_id, $tries + 1]);
            }
            throw $error;
        }
    }

    private function withdraw_invoice(string $invoice_id): void
    {
        try {
            $this->client->withdrawInvoice($invoice_id);
        } catch (\Quittance\ApiException $error) {
            // A paid invoice asks for nothing, and the server may have lost the other one in a restore.
            if (!in_array($error->errorCode, ['INVOICE_PAID', 'INVOICE_NOT_FOUND'], true)) {
                throw $error;
            }
        }
    }

    private function sweep_events(): void
    {
        $read = fn(array $place): array => $this->client->listEvents(['types' => self::EVENTS] + $place);
        if (get_option(self::EVENTS_AFTER, null) === null) {
            return;
        }
        try {
            self::walk(self::EVENTS_AFTER, 0, $read, [$this, 'handle']);
        } catch (\Quittance\ApiException $error) {
            if (!in_array('UNKNOWN_EVENT', array_column($error->errors, 'code'), true)) {
                throw $error;
            }
            // The server was restored from an older backup, or the key is now another project's. Reading an event again changes nothing.
            update_option(self::EVENTS_AFTER, '', false);
            delete_option(self::TRANSFERS_AFTER);
            self::walk(self::EVENTS_AFTER, 0, $read, [$this, 'handle']);
        }
    }

    private function sweep_transfers(): void
    {
        self::walk(self::TRANSFERS_AFTER, self::LOCK_SECONDS, [$this->client, 'listTransfers'], [self::class, 'note_transfer']);
    }

    /** Works through a list from a stored place on, which moves after the work: a crash costs a repeat, and nothing is passed over. */
    private static function walk(string $place, int $lock_seconds, callable $read, callable $work): void
    {
        self::locked($place, static function () use ($place, $read, $work): void {
            for ($pages = 0, $hasMore = true; $hasMore && $pages < self::PAGES_A_SWEEP; $pages++) {
                $last = (string) get_option($place, '');
                $page = $read(['limit' => 100] + ($last === '' ? [] : ['after' => $last]));
                foreach ($page['data'] as $each) {
                    $last = self::text($each, isset($each['transferId']) ? 'transferId' : 'id');
                    self::carry_on($last, static fn() => $work($each));
                    // Also after each one, because PHP may end the job before the whole page is done.
                    update_option($place, $last, false);
                }
                update_option($place, $page['next'] ?? $last, false);
                $hasMore = $page['hasMore'] ?? isset($page['next']);
            }
        }, $lock_seconds);
    }

    /** A single order or invoice that fails must not hold up all that comes after it; a server that cannot be asked must. */
    private static function carry_on(string $what, callable $work): void
    {
        try {
            $work();
        } catch (\Quittance\ApiException $error) {
            if (!in_array($error->errorCode, ['INTEGRITY', 'INVOICE_NOT_FOUND'], true)) {
                throw $error;
            }
            self::log("skipped $what: " . $error->getMessage());
        } catch (\Throwable $error) {
            self::log("skipped $what; check its order manually: " . $error->getMessage());
        }
    }

    /** Reads the invoice under the lock of its order, and does what follows from it. */
    private function refresh(string $external_id, string $invoice_id, bool $isOrphaned): void
    {
        self::on_order(self::order_id($external_id), function (?WC_Order $order) use ($external_id, $invoice_id, $isOrphaned): void {
            try {
                $invoice = $this->client->getInvoice($invoice_id, true);
            } catch (\Quittance\ApiException $error) {
                $isOurs = $order !== null && self::attempt_of($order, ['externalId' => $external_id, 'invoiceId' => $invoice_id]) !== null;
                if ($isOurs && $error->errorCode === 'INTEGRITY') {
                    $text = "The server does not show invoice $invoice_id, because its data or its address cannot be trusted. Do not deliver."
                        . ' Check the order again after the operator has repaired it.';
                    self::note($order, "doubt $invoice_id", $text);
                }
                throw $error;
            }
            if ($order !== null && $invoice['externalId'] === $external_id) {
                $this->apply($order, $invoice, $isOrphaned);
            } elseif ($invoice['status'] === 'PAID') {
                self::log("$invoice_id ({$invoice['externalId']}) is paid, but belongs to no order of this shop ($external_id)");
            }
        });
    }

    /** What an order becomes by its invoice. Doing it again changes nothing. */
    private function apply(WC_Order $order, array $invoice, bool $isOrphaned = false): void
    {
        $attempt = self::attempt_of($order, $invoice);
        if ($attempt === null) {
            return; // of another shop that shares the project
        }
        $id = $invoice['invoiceId'];
        if ($invoice['status'] === 'PAID') {
            $this->apply_paid($order, $invoice, $attempt);
            return;
        }
        $status = $order->has_status(['pending', 'failed']) ? 'on-hold' : null;
        if ($invoice['status'] === 'CONFIRMING') {
            self::note($order, "confirming $id", 'The payment is on the chain, but not irreversible yet. Do not deliver.', $status);
        } elseif ($isOrphaned || self::is_noted($order, "confirming $id")) {
            $text = 'The block with the payment was orphaned, so the invoice waits for payment again. Do not deliver.';
            self::note($order, "orphaned $id", $text, $status);
        }
        if ($invoice['status'] === 'EXPIRED') {
            self::note($order, "expired $id", 'The invoice has expired without payment. The plugin still notices a late payment.');
        }
    }

    private function apply_paid(WC_Order $order, array $invoice, array $attempt): void
    {
        $id = $invoice['invoiceId'];
        if (self::is_noted($order, "paid $id")) {
            return;
        }
        $payment = (array) ($invoice['payment'] ?? []);
        $transaction = (array) ($payment['transaction'] ?? []);
        $tx_id = self::text($transaction, 'txId');
        $told = "Invoice $id is paid with " . self::text($payment, 'payableAmount') . " USDT (transaction $tx_id)";
        if (isset($payment['price'])) {
            $currency = self::text((array) $payment['price'], 'currency');
            $told .= ' for ' . self::amount(self::text((array) $payment['price'], 'amount')) . " $currency";
            $told .= ' at ' . self::text((array) $payment['price'], 'rate') . " $currency for 1 USDT";
        }
        if ($order->is_paid() && $tx_id !== '' && $order->get_transaction_id() === $tx_id) {
            self::note($order, "paid $id", "$told."); // completed by this payment, and then interrupted
        } elseif ($order->is_paid() || $order->has_status('refunded')) {
            self::note($order, "paid $id", "$told, but the order was already paid or refunded. Check it manually. Nothing was refunded.");
        } elseif (($reasons = self::objections($order, $payment, $attempt)) !== []) {
            self::note($order, "paid $id", "$told, but " . implode('; ', $reasons) . '. Deliver the order or send the money back manually.', 'on-hold');
        } elseif ($order->payment_complete($tx_id)) {
            self::note($order, "paid $id", $told . (($transaction['late'] ?? false) === true ? ', late.' : '.'));
        } else {
            throw new \RuntimeException('order ' . $order->get_id() . ' could not be completed');
        }
    }

    /** Why an invoice that is paid must not complete its order. */
    private static function objections(WC_Order $order, array $payment, array $attempt): array
    {
        return array_keys(array_filter([
            'the order was already ' . $order->get_status() => !$order->has_status(['pending', 'on-hold', 'failed']),
            "the invoice was not created for {$attempt['amount']} {$attempt['currency']}" => !self::is_made_for($payment, $attempt),
            'the order total has changed' => self::amount($order->get_total('edit')) !== $attempt['amount'],
            'the order currency has changed' => $order->get_currency() !== $attempt['currency'],
            'the order now has another payment method' => $order->get_payment_method() !== 'quittance',
        ]));
    }

    /** A price is compared with the price of the invoice, never with its USDT. */
    private static function is_made_for(array $payment, array $attempt): bool
    {
        if (!self::is_priced($attempt['currency'])) {
            return self::amount(self::text($payment, 'requestedAmount')) === $attempt['amount'];
        }
        $price = (array) ($payment['price'] ?? []);
        return self::text($price, 'currency') === $attempt['currency'] && self::amount(self::text($price, 'amount')) === $attempt['amount'];
    }

    private static function note_transfer(array $transfer): void
    {
        $id = self::text($transfer, 'transferId');
        $of = (array) ($transfer['invoice'] ?? $transfer['nearestInvoice'] ?? []);
        self::on_order(self::order_id(self::text($of, 'externalId')), static function (?WC_Order $order) use ($transfer, $of, $id): void {
            if ($order === null || self::attempt_of($order, $of) === null || self::is_noted($order, "transfer $id")) {
                return;
            }
            $came = self::text($transfer, 'amount') . ' USDT arrived in transaction ' . self::text($transfer, 'txId');
            $reason = self::text((array) ($transfer['reason'] ?? []), 'code');
            $order->add_meta_data(self::TRANSFER, $id);
            self::note($order, "transfer $id", ($transfer['kind'] ?? '') === 'duplicate'
                ? "$came for the invoice of this order, which was already paid. Send the money back manually, or agree on a solution with the customer."
                : "$came, probably for this order ($reason). It does not pay the invoice, so the order stays unchanged.");
        });
    }

    private function note_refund(array $data): void
    {
        $this->sweep_transfers(); // so that the order has its note of what came
        $id = self::text($data, 'transferId');
        $found = wc_get_orders(['limit' => 1, 'return' => 'ids', 'meta_key' => self::TRANSFER, 'meta_value' => $id]);
        self::on_order($id === '' ? 0 : (int) (((array) $found)[0] ?? 0), static function (?WC_Order $order) use ($data, $id): void {
            if ($order !== null && self::is_noted($order, "transfer $id")) {
                $tx_id = self::text((array) ($data['refund'] ?? []), 'txId');
                self::note($order, "refund $id", self::text($data, 'amount') . " USDT was sent back to the sender in transaction $tx_id.");
            }
        });
    }

    /** Asks for the invoice of an attempt. It is stored before, and again with the invoice's id. */
    private function ask(WC_Order $order, array $attempts, int $at): array
    {
        self::store($order, self::ATTEMPTS, $attempts);
        $invoice = $this->create($attempts[$at]);
        $attempts[$at]['invoiceId'] = $invoice['invoiceId'];
        self::store($order, self::ATTEMPTS, $attempts);
        return $invoice;
    }

    private function create(array $attempt): array
    {
        ['externalId' => $id, 'amount' => $amount, 'currency' => $currency] = $attempt;
        if (!self::is_priced($currency)) {
            return $this->client->createInvoice($amount, $id, $id);
        }
        try {
            $invoice = $this->client->createInvoiceForPrice($amount, $currency, $id, $id);
        } catch (\Quittance\ApiException $error) {
            self::lacks_rate($error) && set_transient(self::NO_RATE, $currency, DAY_IN_SECONDS);
            throw $error;
        }
        get_transient(self::NO_RATE) === $currency && delete_transient(self::NO_RATE);
        return $invoice;
    }

    /** The feed is read from where it stood before the first invoice of this shop. */
    private function begin_feed(): void
    {
        if (get_option(self::EVENTS_AFTER, null) === null) {
            add_option(self::EVENTS_AFTER, (string) $this->client->listEvents(['limit' => 1])['latest'], '', false);
        }
    }

    private static function next_attempt(WC_Order $order, string $amount, int $number): array
    {
        if ($number > self::MAX_ATTEMPTS) {
            throw new \RuntimeException('order ' . $order->get_id() . ' has had too many invoices');
        }
        // The order's key is random, so that two shops with one project never meet in an id.
        $seed = implode("\n", [$order->get_order_key(), $number, $amount, $order->get_currency()]);
        $external_id = 'wc-' . $order->get_id() . "-$number-" . substr(hash('sha256', $seed), 0, 24);
        return ['externalId' => $external_id, 'amount' => $amount, 'currency' => $order->get_currency(), 'invoiceId' => ''];
    }

    private static function attempts(WC_Order $order): array
    {
        $stored = $order->get_meta(self::ATTEMPTS);
        return is_array($stored) ? array_values($stored) : [];
    }

    private static function attempt_of(WC_Order $order, array $invoice): ?array
    {
        foreach (self::attempts($order) as $attempt) {
            $isSame = $attempt['invoiceId'] === '' || $attempt['invoiceId'] === ($invoice['invoiceId'] ?? null);
            if ($attempt['externalId'] === ($invoice['externalId'] ?? null) && $isSame) {
                return $attempt;
            }
        }
        return null;
    }

    /** The order that an external id names, which proves nothing yet; 0 for another's id. */
    private static function order_id(string $external_id): int
    {
        return preg_match('/\Awc-([1-9][0-9]{0,17})-[0-9]{1,3}-[0-9a-f]{24}\z/', $external_id, $found) === 1 ? (int) $found[1] : 0;
    }

    /** A total as the API takes it, in the shortest form, without ever being a float; null if it cannot be asked for. */
    private static function amount($total): ?string
    {
        if (!is_string($total) || preg_match('/\A0*([0-9]{1,12})(?:\.([0-9]*))?\z/', $total, $parts) !== 1) {
            return null;
        }
        $fraction = rtrim($parts[2] ?? '', '0');
        if (strlen($fraction) > 6 || ($parts[1] === '0' && $fraction === '')) {
            return null;
        }
        return $parts[1] . ($fraction === '' ? '' : ".$fraction");
    }

    /** The order as the database has it now. */
    private static function load(int $order_id): ?WC_Order
    {
        clean_post_cache($order_id);
        $order = wc_get_order($order_id);
        $order instanceof WC_Order && $order->read_meta_data(true);
        return $order instanceof WC_Order ? $order : null;
    }

    /** Says something once, and sets a status with it. */
    private static function note(WC_Order $order, string $mark, string $text, ?string $status = null): void
    {
        if (self::is_noted($order, $mark)) {
            return;
        }
        $order->update_meta_data(self::NOTED, array_merge(array_filter((array) $order->get_meta(self::NOTED)), [$mark]));
        if ($status === null || $order->has_status($status)) {
            $order->add_order_note(esc_html($text));
        } else {
            $order->set_status($status, esc_html($text));
        }
        $order->save();
    }

    private static function is_noted(WC_Order $order, string $mark): bool
    {
        return in_array($mark, (array) $order->get_meta(self::NOTED), true);
    }

    private static function store(WC_Order $order, string $key, array $value): void
    {
        $order->update_meta_data($key, $value);
        $order->save();
    }

    private static function text(array $of, string $member): string
    {
        return is_string($of[$member] ?? null) ? substr($of[$member], 0, 255) : '';
    }

    /** Does something with an order, or null if it is not there, while nobody else does; nothing for the id 0. */
    private static function on_order(int $order_id, callable $work): void
    {
        $order_id === 0 || self::locked("order-$order_id", static fn() => $work(self::load($order_id)));
    }

    /** One request at a time, of all processes; the database forgets it with the connection. */
    private static function locked(string $name, callable $work, int $seconds = self::LOCK_SECONDS)
    {
        global $wpdb;
        $key = 'quittance-' . md5(DB_NAME . " $wpdb->prefix $name");
        if ((string) $wpdb->get_var($wpdb->prepare('SELECT GET_LOCK(%s, %d)', $key, $seconds)) !== '1') {
            throw new \Quittance\ApiException('BUSY', "$name is locked by another request");
        }
        try {
            return $work();
        } finally {
            $wpdb->query($wpdb->prepare('SELECT RELEASE_LOCK(%s)', $key));
        }
    }
}
