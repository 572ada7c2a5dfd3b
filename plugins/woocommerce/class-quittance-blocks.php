<?php

declare(strict_types=1);

defined('ABSPATH') || exit;

/** The payment method in the checkout of blocks, which shows only methods that bring a script. The gateway takes the payment there too. */
final class Quittance_Blocks extends \Automattic\WooCommerce\Blocks\Payments\Integrations\AbstractPaymentMethodType
{
    protected $name = 'quittance';

    public function initialize(): void
    {
        $this->settings = (array) get_option('woocommerce_quittance_settings', []);
    }

    public function is_active(): bool
    {
        return $this->get_setting('enabled') === 'yes' && Quittance_Gateway::why_unavailable() === null;
    }

    public function get_payment_method_script_handles(): array
    {
        $needed = ['wc-blocks-registry', 'wc-settings', 'wp-element', 'wp-html-entities'];
        wp_register_script('quittance-blocks', plugins_url('quittance-blocks.js', __FILE__), $needed, '0.1.0', true);
        return ['quittance-blocks'];
    }

    public function get_payment_method_data(): array
    {
        return ['title' => $this->get_setting('title'), 'description' => $this->get_setting('description')];
    }
}
