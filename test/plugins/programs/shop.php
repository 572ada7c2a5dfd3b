<?php

/** A shop of the tests upon the client: `POST /hook` takes webhooks, `POST /<method>` calls the client, `POST /state` tells what it did. */

declare(strict_types=1);

require __DIR__ . '/../../../plugins/php/Quittance.php';

use Quittance\ApiException;
use Quittance\Client;
use Quittance\Webhook;
use Quittance\WebhookException;

$path = ltrim((string) parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH), '/');
$input = file_get_contents('php://input');
header('Content-Type: application/json');
if ($path === 'hook') {
    http_response_code(receive($input));
} elseif ($path === 'set') {
    change(static function (array $state) use ($input): array {
        return json_decode($input, true)[0] + $state;
    });
    echo '{}';
} elseif ($path === 'state') {
    echo json_encode(change(static function (array $state): array {
        return $state;
    }));
} elseif ($path === 'catchUp') {
    catch_up();
    echo '{}';
} elseif ($path !== '') {
    echo json_encode(call($path, json_decode($input, true)));
}

function client(): Client
{
    return new Client(getenv('QUITTANCE_URL'), getenv('QUITTANCE_API_KEY'));
}

function call(string $method, array $parameters): array
{
    try {
        $baseUrl = $method === 'createAt' ? array_shift($parameters) : null;
        $apiKey = $method === 'withKey' ? array_shift($parameters) : getenv('QUITTANCE_API_KEY');
        $method = $method === 'withKey' ? array_shift($parameters) : $method;
        $client = $baseUrl === null ? new Client(getenv('QUITTANCE_URL'), $apiKey) : new Client($baseUrl, getenv('QUITTANCE_API_KEY'), array_shift($parameters));
        $method = $baseUrl === null ? $method : 'createInvoice';
        return ['answer' => $client->$method(...$parameters)];
    } catch (ApiException $error) {
        return ['error' => get_object_vars($error) + ['message' => $error->getMessage()]];
    } catch (\InvalidArgumentException $error) {
        return ['refused' => $error->getMessage()];
    }
}

function receive(string $body): int
{
    $state = change(static function (array $state): array {
        return $state;
    });
    if ($state['isDeaf'] ?? false) {
        return 200;
    }
    try {
        handle(Webhook::verify($body, $_SERVER, $state['secrets'] ?? []));
    } catch (WebhookException $refusal) {
        return 400;
    }
    return 204;
}

/** The invoice as it is read is what counts; an order is fulfilled once. */
function handle(array $event): void
{
    $invoice = null;
    if (strncmp($event['type'], 'invoice.', 8) === 0) {
        $invoice = client()->getInvoice($event['data']['invoiceId']);
    }
    change(static function (array $state) use ($event, $invoice): array {
        if (in_array($event['id'], $state['handled'] ?? [], true)) {
            return $state;
        }
        $state['handled'][] = $event['id'];
        $about = $event['data']['externalId'] ?? $event['data']['txId'] ?? '';
        $state['heard'][] = $event['type'] . ' ' . $about;
        if (Client::isFulfillable($invoice, (string) $about) && $event['type'] === 'invoice.paid') {
            $state['fulfilled'][$about] = ($state['fulfilled'][$about] ?? 0) + 1;
        }
        return $state;
    });
}

function catch_up(): void
{
    $after = change(static function (array $state): array {
        return $state;
    })['after'];
    do {
        $page = client()->listEvents(['after' => $after, 'limit' => 2]);
        foreach ($page['data'] as $event) {
            handle($event);
            $after = $event['id'];
        }
    } while ($page['hasMore']);
}

/** The state, changed by one process at a time. */
function change(callable $change): array
{
    $file = fopen(getenv('SHOP_FOLDER') . '/state.json', 'c+');
    flock($file, LOCK_EX);
    $state = $change(json_decode(stream_get_contents($file) ?: '{}', true));
    ftruncate($file, 0);
    rewind($file);
    fwrite($file, json_encode($state));
    fclose($file);
    return $state;
}
