<?php

/** A must-use plugin of the tests' shop: what a customer or a shopkeeper does, as JSON over HTTP. It sends no mail. */

declare(strict_types=1);

function wp_mail(): bool
{
    return true;
}

add_action('wp_loaded', static function (): void {
    $action = (string) ($_GET['quittance-test'] ?? '');
    if ($action === '') {
        return;
    }
    $id = (int) ($_GET['order'] ?? 0);
    $value = (string) ($_GET['value'] ?? '');
    $done = ['create' => 'test_create', 'pay' => 'test_pay', 'order' => 'test_order', 'sweep' => 'test_sweep', 'set' => 'test_set', 'blocks' => 'test_blocks', 'retry' => 'test_retry', 'card' => 'test_card'];
    wp_send_json($done[$action]($id, $value));
});

function test_create(int $id, string $total): array
{
    $order = wc_create_order();
    $fee = new WC_Order_Item_Fee();
    $fee->set_name('Goods');
    $fee->set_total($total);
    $fee->set_tax_status('none');
    $order->add_item($fee);
    $order->set_payment_method('quittance');
    $order->calculate_totals(false);
    $order->save();
    return ['id' => $order->get_id()];
}

function test_pay(int $id): array
{
    WC()->initialize_session();
    try {
        return WC()->payment_gateways()->payment_gateways()['quittance']->process_payment($id);
    } catch (Exception $error) {
        return ['result' => 'failure', 'told' => $error->getMessage()];
    }
}

function test_order(int $id): array
{
    $order = wc_get_order($id);
    $notes = array_map(static function ($note) {
        return $note->content;
    }, wc_get_order_notes(['order_id' => $id]));
    return [
        'status' => $order->get_status(),
        'notes' => $notes,
        'transactionId' => $order->get_transaction_id(),
        'attempts' => $order->get_meta('_quittance_attempts') ?: [],
        'isAvailable' => WC()->payment_gateways()->payment_gateways()['quittance']->is_available(),
        'noRate' => Quittance_Gateway::why_no_rate(),
        'isScheduled' => wp_next_scheduled('quittance_sweep') !== false,
        'hpos' => \Automattic\WooCommerce\Utilities\OrderUtil::custom_orders_table_usage_is_enabled(),
        'completions' => (int) get_option("test_completions_$id"),
    ];
}

/** A page with the checkout of blocks, and goods without a delivery. */
function test_blocks(int $id, string $price): array
{
    $product = new WC_Product_Simple();
    $product->set_name('Goods');
    $product->set_regular_price($price);
    $product->set_virtual(true);
    $content = '<!-- wp:woocommerce/checkout --><div class="wp-block-woocommerce-checkout"></div><!-- /wp:woocommerce/checkout -->';
    $page = wp_insert_post(['post_type' => 'page', 'post_status' => 'publish', 'post_title' => 'Checkout', 'post_content' => $content]);
    update_option('woocommerce_checkout_page_id', $page);
    return ['product' => $product->save(), 'page' => $page];
}

/** So often an order became paid. */
add_action('woocommerce_payment_complete', static function ($id): void {
    update_option("test_completions_$id", (int) get_option("test_completions_$id") + 1);
});

/** Another payment method takes the money, or the shopkeeper says so. */
function test_card(int $id, string $way): array
{
    $order = wc_get_order($id);
    $way === 'by hand, with the same method' || $order->set_payment_method('card');
    $order->save();
    $way === 'by card' ? $order->payment_complete('card-1') : $order->update_status('processing');
    return [];
}

function test_sweep(): array
{
    do_action('quittance_sweep');
    return [];
}

/** Runs the order's withdrawals that are scheduled, without waiting for their time. */
function test_retry(int $id): array
{
    $runs = [];
    foreach (_get_cron_array() ?: [] as $time => $hooks) {
        foreach ($hooks['quittance_withdraw'] ?? [] as ['args' => $args]) {
            if ($args[0] !== $id) {
                continue;
            }
            wp_unschedule_event($time, 'quittance_withdraw', $args);
            do_action_ref_array('quittance_withdraw', $args);
            $runs[] = $args;
        }
    }
    return $runs;
}

function test_set(int $id, string $value): array
{
    [$what, $to] = explode(':', $value, 2);
    if ($what === 'option') {
        [$name, $text] = explode('=', $to, 2);
        $settings = get_option('woocommerce_quittance_settings');
        $name === 'currency' ? update_option('woocommerce_currency', $text) : update_option('woocommerce_quittance_settings', [$name => $text] + $settings);
        return [];
    }
    if ($what === 'position') {
        update_option('quittance_events_after', $to);
        return [];
    }
    $order = wc_get_order($id);
    if ($what === 'status') {
        $order->update_status($to);
    } elseif ($what === 'currency') {
        $order->set_currency($to);
        $order->save();
    } else {
        $fee = array_values($order->get_items('fee'))[0];
        $fee->set_total($to);
        $fee->save();
        $order->calculate_totals(false);
    }
    return [];
}
