<?php

declare(strict_types=1);

defined('ABSPATH') || exit;

/** The payment method of the shop. It refunds nothing: money leaves only by the operator's hand. */
final class Quittance_Gateway extends WC_Payment_Gateway
{
    public function __construct()
    {
        $this->id = 'quittance';
        $this->method_title = 'Quittance (USDT on TRON)';
        $this->method_description = 'Register this URL at your server, for all events: ' . WC()->api_request_url('quittance');
        $this->has_fields = false;
        $this->supports = ['products'];
        $this->init_form_fields();
        $this->init_settings();
        $this->title = $this->get_option('title');
        $this->description = $this->get_option('description');
        add_action("woocommerce_update_options_payment_gateways_$this->id", [$this, 'save_settings']);
    }

    public function init_form_fields(): void
    {
        $this->form_fields = [
            'enabled' => ['title' => 'Enable', 'type' => 'checkbox', 'label' => 'Take USDT', 'default' => 'no'],
            'title' => ['title' => 'Title', 'type' => 'text', 'default' => 'USDT (TRON)'],
            'description' => ['title' => 'Description', 'type' => 'textarea', 'default' => 'You will see the exact amount and the address.'],
            'url' => ['title' => 'Server', 'type' => 'text', 'placeholder' => 'https://pay.example.com'],
            'api_key' => ['title' => 'API key', 'type' => 'password', 'description' => 'qt_live_… or, for a test network, qt_test_…'],
            'webhook_secret' => ['title' => 'Webhook secret', 'type' => 'password', 'description' => 'whsec_…; while it is rotated, both with a space between.'],
            'usd_is_usdt' => ['title' => 'US dollars', 'type' => 'checkbox', 'default' => 'no', 'label' => 'Ask for 1 USDT for 1 USD.'],
        ];
    }

    /** Another project has another feed, so the place in the old one means nothing. */
    public function save_settings(): void
    {
        $before = [$this->get_option('url'), $this->get_option('api_key')];
        $this->process_admin_options();
        delete_transient(Quittance_Orders::NO_RATE);
        if ($before !== [$this->get_option('url'), $this->get_option('api_key')]) {
            delete_option(Quittance_Orders::EVENTS_AFTER);
            delete_option(Quittance_Orders::TRANSFERS_AFTER);
        }
    }

    public function is_available(): bool
    {
        return parent::is_available() && self::why_unavailable() === null;
    }

    /** Why an enabled gateway takes nothing, in a sentence; null if it does, or is not enabled. */
    public static function why_unavailable(): ?string
    {
        $settings = Quittance_Orders::settings();
        if ($settings['enabled'] !== 'yes') {
            return null;
        }
        $currency = get_woocommerce_currency();
        if (!Quittance_Orders::takes_currency($currency)) {
            return $currency === 'USD'
                ? 'the currency of the shop is USD; allow 1 USDT for 1 USD in its settings, or choose the currency USDT.'
                : "the currency of the shop is $currency; choose one whose code has 3 to 5 capital letters, such as EUR.";
        }
        try {
            Quittance_Orders::of_settings();
            \Quittance\Webhook::readSecrets(Quittance_Orders::webhook_secrets());
        } catch (\InvalidArgumentException $error) {
            return $error->getMessage();
        }
        return null;
    }

    /** What the operator of the server has to do before orders in the currency of the shop can be paid; null if nothing is known. */
    public static function why_no_rate(): ?string
    {
        $currency = get_transient(Quittance_Orders::NO_RATE);
        return is_string($currency)
            ? "an order in $currency could not be paid, because the server has no rate for $currency. Its operator can set one with:"
                . " quittance adapter enable --kind price --currency $currency --rate … The next order in $currency clears this notice."
            : null;
    }

    /** @return array{result: string, redirect: string} */
    public function process_payment($order_id): array
    {
        try {
            return ['result' => 'success', 'redirect' => Quittance_Orders::of_settings()->start((int) $order_id)];
        } catch (\Throwable $error) {
            Quittance_Orders::log("order $order_id: " . $error->getMessage());
            $advice = Quittance_Orders::lacks_rate($error) ? 'choose another way to pay, and tell the shop' : 'try again in a minute';
            // Every checkout shows what is thrown; that of blocks nothing else.
            throw new \Exception("The payment could not be started. Nothing was charged; please $advice.");
        }
    }
}
