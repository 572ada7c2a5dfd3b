<?php

/** Makes the tests' shop: `php install.php <folder> <step> <settings as JSON>`. Each step is a process, for plugins load once in each. */

declare(strict_types=1);

[, $folder, $step, $json] = $argv;
$_SERVER['HTTP_HOST'] = 'localhost';
$step === 'wordpress' && define('WP_INSTALLING', true);
require "$folder/wp-load.php";
if ($step === 'wordpress') {
    require ABSPATH . 'wp-admin/includes/upgrade.php';
    wp_install('Shop', 'owner', 'owner@example.com', false, '', bin2hex(random_bytes(16)));
    update_option('template', 'plain');
    update_option('stylesheet', 'plain');
    update_option('active_plugins', ['woocommerce/woocommerce.php', 'quittance-for-woocommerce/quittance-for-woocommerce.php']);
} else {
    WC_Install::install();
    $settings = json_decode($json, true);
    update_option('woocommerce_currency', 'USD');
    update_option('woocommerce_quittance_settings', $settings['gateway']);
    update_option('woocommerce_custom_orders_table_enabled', $settings['hpos'] ? 'yes' : 'no');
    update_option('woocommerce_feature_custom_order_tables_enabled', $settings['hpos'] ? 'yes' : 'no');
    if ($settings['hpos']) {
        wc_get_container()->get(\Automattic\WooCommerce\Internal\DataStores\Orders\DataSynchronizer::class)->create_database_tables();
    }
    echo WC()->version, ' ', get_bloginfo('version');
}
