<?php

/** `php main.php <folder of the client> <URL> <key>`, with Guzzle 7. */

declare(strict_types=1);

[, $folder, $url, $key] = $argv;
require 'GuzzleHttp/autoload.php';
spl_autoload_register(static function (string $class) use ($folder): void {
    require "$folder/lib/" . str_replace(['OpenAPI\\Client\\', '\\'], ['', '/'], $class) . '.php';
});

$configuration = (new OpenAPI\Client\Configuration())->setHost($url)->setApiKey('X-Api-Key', $key);
$api = new OpenAPI\Client\Api\InvoicesApi(new GuzzleHttp\Client(), $configuration);
$order = ['amount' => '25.00', 'asset' => 'USDT', 'network' => 'TRON', 'external_id' => 'php-1'];
$created = $api->createInvoice('php-1', new OpenAPI\Client\Model\CreateInvoice($order));
$read = $api->readInvoice($created->getInvoiceId(), 'payment');
$invoices = count($api->findInvoices()->getData());
$events = count((new OpenAPI\Client\Api\EventsApi(new GuzzleHttp\Client(), $configuration))->listEvents()->getData());
try {
    $api->readInvoice('inv_none');
} catch (OpenAPI\Client\ApiException $refused) {
    echo implode(' ', [$created->getInvoiceId(), $read->getStatus(), $refused->getCode(), $invoices, $events]), "\n";
}
