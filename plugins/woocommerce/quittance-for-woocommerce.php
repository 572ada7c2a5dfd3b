<?php
/**
 * Plugin Name: Quittance for WooCommerce
 * Description: Accept USDT on TRON directly to your own addresses, with your own Quittance server.
 * Version: 0.1.0
 * Requires at least: 6.1
 * Requires PHP: 7.4
 * WC requires at least: 7.9
 * License: Apache-2.0
 */

declare(strict_types=1);

defined('ABSPATH') || exit;

const QUITTANCE_SWEEP = 'quittance_sweep';
const QUITTANCE_WITHDRAW = 'quittance_withdraw';

add_action('before_woocommerce_init', static function (): void {
    if (class_exists(\Automattic\WooCommerce\Utilities\FeaturesUtil::class)) {
        \Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility('custom_order_tables', __FILE__, true);
        \Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility('cart_checkout_blocks', __FILE__, true);
    }
});

add_action('woocommerce_blocks_payment_method_type_registration', static function ($registry): void {
    // The checkout of blocks shows only methods that bring a script. The gateway takes the payment there too.
    $registry->register(new class extends \Automattic\WooCommerce\Blocks\Payments\Integrations\AbstractPaymentMethodType {
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
            return array_map('wp_strip_all_tags', ['title' => $this->get_setting('title'), 'description' => $this->get_setting('description')]);
        }
    });
});

add_action('plugins_loaded', static function (): void {
    if (!class_exists('WC_Payment_Gateway')) {
        return;
    }
    if (!class_exists(\Quittance\Client::class)) {
        require __DIR__ . '/Quittance.php';
    }
    require __DIR__ . '/class-quittance-orders.php';
    require __DIR__ . '/class-quittance-gateway.php';
    add_filter('woocommerce_payment_gateways', static fn(array $gateways): array => array_merge($gateways, [Quittance_Gateway::class]));
    add_filter('woocommerce_currencies', static fn(array $currencies): array => $currencies + ['USDT' => 'Tether USD']);
    add_filter('woocommerce_currency_symbol', static function (string $symbol, string $currency): string {
        return $currency === 'USDT' ? 'USDT' : $symbol;
    }, 10, 2);
    add_action('woocommerce_api_quittance', 'quittance_receive_webhook');
    add_action(QUITTANCE_SWEEP, static function (): void {
        quittance_try(static fn(Quittance_Orders $orders) => $orders->sweep());
    });
    $withdraw = static function ($order_id, $tries = 0): void {
        quittance_try(static fn(Quittance_Orders $orders) => $orders->withdraw((int) $order_id, (int) $tries));
    };
    add_action('woocommerce_order_status_cancelled', $withdraw);
    // Also an order that another payment method completed, or the shopkeeper by hand.
    foreach (['payment_complete', 'order_status_processing', 'order_status_completed'] as $paid) {
        add_action("woocommerce_$paid", [Quittance_Orders::class, 'withdraw_soon']);
    }
    add_action(QUITTANCE_WITHDRAW, $withdraw, 10, 2);
    add_action('admin_notices', static function (): void {
        if (!current_user_can('manage_woocommerce')) {
            return;
        }
        if (($reason = Quittance_Gateway::why_unavailable()) !== null) {
            echo '<div class="notice notice-error"><p>' . esc_html("Quittance accepts no payments: $reason") . '</p></div>';
        } elseif (($reason = Quittance_Gateway::why_no_rate()) !== null) {
            echo '<div class="notice notice-error"><p>' . esc_html("Quittance: $reason") . '</p></div>';
        }
    });
});

add_filter('cron_schedules', static function (array $schedules): array {
    return $schedules + ['quittance_5_minutes' => ['interval' => 300, 'display' => 'Every 5 minutes']];
});
add_action('init', static function (): void {
    if (wp_next_scheduled(QUITTANCE_SWEEP) === false) {
        wp_schedule_event(time() + 60, 'quittance_5_minutes', QUITTANCE_SWEEP);
    }
});
register_deactivation_hook(__FILE__, static function (): void {
    wp_clear_scheduled_hook(QUITTANCE_SWEEP);
    wp_unschedule_hook(QUITTANCE_WITHDRAW);
});

/** What fails here is logged: neither the job nor the shopkeeper's click must break. */
function quittance_try(callable $work): void
{
    try {
        $work(Quittance_Orders::of_settings());
    } catch (\InvalidArgumentException $incomplete) {
        return; // the notice for the shopkeeper says what is missing
    } catch (\Throwable $error) {
        Quittance_Orders::log($error->getMessage());
    }
}

/** `/?wc-api=quittance`: 401 for what is not genuine, 204 when it is done, 503 when it shall come again. */
function quittance_receive_webhook(): void
{
    try {
        // The bytes as they came; one more than is taken shows that there were too many.
        $body = (string) file_get_contents('php://input', false, null, 0, \Quittance\Webhook::MAX_BODY_BYTES + 1);
        $event = \Quittance\Webhook::verify($body, wp_unslash($_SERVER), Quittance_Orders::webhook_secrets());
        Quittance_Orders::of_settings()->handle($event);
        $status = 204;
    } catch (\Quittance\WebhookException $refusal) {
        $status = 401;
    } catch (\InvalidArgumentException $incomplete) {
        $status = 503; // not logged, for strangers could fill the log of a shop without a secret
    } catch (\Throwable $error) {
        $status = 503;
        Quittance_Orders::log($error->getMessage());
    }
    status_header($status);
    exit;
}
