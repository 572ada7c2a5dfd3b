<?php

/** `php quittance.php <file of the client for PHP> <URL> <key>` */

declare(strict_types=1);

[, $file, $url, $key] = $argv;
require $file;

$client = new Quittance\Client($url, $key);
$created = $client->createInvoice('25.00', 'client-1', 'client-1');
$read = $client->getInvoice($created['invoiceId'], true);
$invoices = count($client->listInvoices()['data']);
$events = count($client->listEvents()['data']);
try {
    $client->getInvoice('inv_unknown');
} catch (Quittance\ApiException $refused) {
    echo implode(' ', [$created['invoiceId'], $read['status'], $refused->status, $invoices, $events]), "\n";
}
