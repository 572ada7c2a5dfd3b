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
        $this->method_description = 'Register this URL as a webhook endpoint for all events on your Quittance server: '
            . WC()->api_request_url('quittance');
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
            'enabled' => ['title' => 'Enable', 'type' => 'checkbox', 'label' => 'Accept USDT', 'default' => 'no'],
            'title' => ['title' => 'Title', 'type' => 'text', 'default' => 'USDT (TRON)'],
            'description' => ['title' => 'Description', 'type' => 'textarea', 'default' => 'You will see the exact amount and the address.'],
            'url' => ['title' => 'Server', 'type' => 'text', 'placeholder' => 'https://pay.example.com'],
            'api_key' => ['title' => 'API key', 'type' => 'password', 'description' => 'qt_live_… or, for a test network, qt_test_…'],
            'webhook_secret' => [
                'title' => 'Webhook secret',
                'type' => 'password',
                'description' => 'whsec_…; during a rotation, enter both secrets with a space between them.',
            ],
            'usd_is_usdt' => ['title' => 'US dollars', 'type' => 'checkbox', 'default' => 'no', 'label' => 'Ask for 1 USDT for 1 USD.'],
        ];
    }

    public function save_settings(): void
    {
        $this->process_admin_options();
        delete_transient(Quittance_Orders::NO_RATE);
    }

    public function is_available(): bool
    {
        return parent::is_available() && self::why_unavailable() === null;
    }

    /** Why an enabled gateway accepts no payments, as the end of a sentence; null if it accepts payments or is not enabled. */
    public static function why_unavailable(): ?string
    {
        $settings = Quittance_Orders::settings();
        if ($settings['enabled'] !== 'yes') {
            return null;
        }
        $currency = get_woocommerce_currency();
        if (!Quittance_Orders::takes_currency($currency)) {
            return $currency === 'USD'
                ? "the shop's currency is USD. Allow 1 USDT for 1 USD in the settings of this payment method, or change the currency to USDT."
                : "the shop's currency is $currency. Choose a currency whose code has 3 to 5 capital letters, such as EUR.";
        }
        try {
            Quittance_Orders::of_settings();
            \Quittance\Webhook::readSecrets(Quittance_Orders::webhook_secrets());
        } catch (\InvalidArgumentException $error) {
            return $error->getMessage();
        }
        return null;
    }

    /** What the server's operator must do before customers can pay orders in the shop's currency; null if no problem is known. */
    public static function why_no_rate(): ?string
    {
        $currency = get_transient(Quittance_Orders::NO_RATE);
        return is_string($currency)
            ? "a customer could not pay an order in $currency, because the server has no rate for $currency. The server's operator can set a rate with:"
                . " quittance adapter enable --kind price --currency $currency --rate … This notice disappears after the next order in $currency."
            : null;
    }

    /** @return array{result: string, redirect: string} */
    public function process_payment($order_id): array
    {
        try {
            return ['result' => 'success', 'redirect' => Quittance_Orders::of_settings()->start((int) $order_id)];
        } catch (\Throwable $error) {
            Quittance_Orders::log("order $order_id: " . $error->getMessage());
            $advice = Quittance_Orders::lacks_rate($error) ? 'choose another payment method, and contact the shop' : 'try again in a minute';
            // A customer who has seen an address may have paid, which the server may not have been able to say.
            $told = Quittance_Orders::has_invoice((int) $order_id)
                ? "If you have already sent USDT, wait: the shop will notice it. Otherwise, please $advice."
                : "You were not charged. Please $advice.";
            // Every checkout shows what is thrown; that of blocks nothing else.
            throw new \Exception("The payment could not be started. $told");
        }
    }
}
