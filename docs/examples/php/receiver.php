<?php
// A shop that accepts USDT through Quittance. PHP 8.1 or newer with PDO, no packages. To try it out:
//   DATABASE_DSN=sqlite:/tmp/shop.sqlite php -S 127.0.0.1:3000 receiver.php
declare(strict_types=1);

const MAX_BODY_BYTES = 64 * 1024; // a webhook has less than 20 KB

try {
    [$status, $answer] = route($_SERVER['REQUEST_METHOD'], (string) parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
} catch (Throwable $error) {
    error_log($error->getMessage());
    [$status, $answer] = [500, ['error' => 'internal']]; // Quittance sends the webhook again
}
http_response_code($status);
header('Content-Type: application/json');
if ($answer !== null) {
    echo json_encode($answer);
}

function route(string $method, string $path): array
{
    // The raw bytes. $_POST and a framework's parsed input are not what was signed.
    $body = (string) file_get_contents('php://input', false, null, 0, MAX_BODY_BYTES + 1);
    if (strlen($body) > MAX_BODY_BYTES) {
        return [413, ['error' => 'too large']];
    }
    return match (true) {
        $method === 'POST' && $path === '/hooks/quittance' => receiveWebhook($body),
        // In your shop, both require a login, and the amount comes from your catalogue, never from the browser.
        $method === 'POST' && $path === '/orders' => placeOrder(json_decode($body, true, 8)),
        $method === 'GET' && str_starts_with($path, '/orders/') => showOrder(rawurldecode(substr($path, 8))),
        default => [404, ['error' => 'not found']],
    };
}

// --- Creating an invoice

function placeOrder(mixed $order): array
{
    $externalId = $order['externalId'] ?? null;
    $amount = $order['amount'] ?? null;
    if (!is_string($externalId) || !is_string($amount) || $externalId === '' || strlen($externalId) > 200) {
        return [400, ['error' => 'give externalId and amount as texts']];
    }
    // Stored before Quittance is asked. The key is stored with it: asking again with it finds the same invoice.
    $insert = 'insert into orders (external_id, amount, idempotency_key) values (?, ?, ?) on conflict do nothing';
    run($insert, [$externalId, $amount, bin2hex(random_bytes(16))]);
    $stored = run('select amount, idempotency_key from orders where external_id = ?', [$externalId])->fetch();
    if ($stored['amount'] !== $amount) {
        return [409, ['error' => 'there is such an order with another amount']];
    }
    $invoice = createInvoice($externalId, $amount, $stored['idempotency_key']);
    return [201, ['invoiceId' => $invoice['invoiceId'], 'checkoutUrl' => $invoice['checkoutUrl']]];
}

function createInvoice(string $externalId, string $amount, string $key): array
{
    $input = ['amount' => $amount, 'asset' => 'USDT', 'network' => 'TRON', 'externalId' => $externalId];
    $body = json_encode($input, JSON_THROW_ON_ERROR);
    foreach ([500, 1000, 2000, null] as $pauseMs) {
        // No answer, 429 and 5xx: the same key and the same bytes again, which never makes a second invoice.
        [$status, $answer, $retryAfter] = askQuittance('/v1/invoices', $body, $key);
        if ($status === 201) {
            return $answer;
        }
        if ($pauseMs === null || ($status !== 0 && $status !== 429 && $status < 500)) {
            break;
        }
        usleep(min(max($pauseMs, $retryAfter * 1000), 5000) * 1000);
    }
    throw new RuntimeException("Quittance: $status " . json_encode($answer));
}

/** The status (0: no answer), the answer, and Retry-After in seconds. With a body it is a POST. */
function askQuittance(string $path, ?string $body = null, string $key = ''): array
{
    $headers = ['X-Api-Key: ' . getenv('QUITTANCE_API_KEY')];
    if ($body !== null) {
        array_push($headers, 'Content-Type: application/json', "Idempotency-Key: $key");
    }
    $content = @file_get_contents(getenv('QUITTANCE_URL') . $path, false, stream_context_create(['http' => [
        'method' => $body === null ? 'GET' : 'POST',
        'header' => $headers,
        'content' => $body ?? '',
        'timeout' => 5,
        'ignore_errors' => true, // the answer also when the status is an error
        'follow_location' => 0, // the key goes to no other place
    ]]));
    $lines = $http_response_header ?? ['HTTP/1.1 0'];
    preg_match('/^retry-after: *([0-9]{1,5})$/im', implode("\n", $lines), $retry);
    return [(int) explode(' ', $lines[0])[1], json_decode((string) $content, true), (int) ($retry[1] ?? 0)];
}

// --- Receiving a webhook

function receiveWebhook(string $body): array
{
    $eventId = verify($body);
    if ($eventId === null) {
        return [400, ['error' => 'not a genuine webhook']];
    }
    if (run('select 1 from handled_events where id = ?', [$eventId])->fetch() !== false) {
        return [204, null];
    }
    $event = json_decode($body, true, 32, JSON_THROW_ON_ERROR);
    // Every other type is answered with 2xx too, also one that is not known yet.
    if ($event['type'] === 'invoice.paid') {
        // The event is a hint; what counts is what Quittance says now. If it cannot be asked, the event comes again.
        [$status, $invoice] = askQuittance('/v1/invoices/' . rawurlencode($event['data']['invoiceId']));
        if ($status !== 200) {
            throw new RuntimeException("Quittance: $status " . json_encode($invoice));
        }
        if ($invoice['status'] === 'PAID') {
            fulfilOnce($eventId, $invoice['externalId']);
        }
    }
    return [204, null];
}

/**
 * One transaction, of which one caller comes through. Only what is quick belongs here, for the answer must come within 15 s:
 * mails and parcels are for a job that takes the paid orders.
 */
function fulfilOnce(string $eventId, string $externalId): void
{
    database()->beginTransaction(); // whatever throws before the commit rolls it back
    $isNew = run('insert into handled_events (id) values (?) on conflict do nothing', [$eventId])->rowCount() === 1;
    if ($isNew) {
        run("update orders set state = 'paid', fulfilments = fulfilments + 1
             where external_id = ? and state = 'waiting'", [$externalId]);
    }
    database()->commit();
}

/** The event's id if the request is genuine, else null. */
function verify(string $body): ?string
{
    // A repeated header comes here as one text with a comma between, which none of these formats takes.
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $timestamp = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    $signatures = $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '';
    $signature = 'v[0-9a-z]+,[A-Za-z0-9+\/=]+';
    // \z, because $ would take a newline.
    if (
        !preg_match('/\A[A-Za-z0-9_-]{1,255}\z/', $id)
        || !preg_match('/\A[1-9][0-9]{0,11}\z/', $timestamp)
        || !preg_match("/\A$signature( $signature){0,15}\z/", $signatures)
        || abs(time() - (int) $timestamp) > 300
    ) {
        return null;
    }
    $secret = (string) getenv('QUITTANCE_WEBHOOK_SECRET');
    $key = base64_decode(substr($secret, strlen('whsec_')), true);
    if (!str_starts_with($secret, 'whsec_') || $key === false || strlen($key) < 24 || strlen($key) > 64) {
        throw new RuntimeException('QUITTANCE_WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes');
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $given) {
        if (hash_equals($expected, $given)) {
            return $id;
        }
    }
    return null;
}

// --- The store. MySQL has `insert ignore` in place of `on conflict do nothing`.

function database(): PDO
{
    static $database = null;
    if ($database === null) {
        $options = [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC];
        $database = new PDO(getenv('DATABASE_DSN') ?: 'sqlite:/var/lib/shop/shop.sqlite', null, null, $options);
        $database->exec("create table if not exists orders (external_id text primary key, amount text not null,
            idempotency_key text not null, state text not null default 'waiting', fulfilments integer not null default 0)");
        $database->exec('create table if not exists handled_events (id text primary key)');
    }
    return $database;
}

function run(string $sql, array $values): PDOStatement
{
    $statement = database()->prepare($sql);
    $statement->execute($values);
    return $statement;
}

function showOrder(string $externalId): array
{
    $row = run('select state, fulfilments from orders where external_id = ?', [$externalId])->fetch();
    return $row === false ? [404, ['error' => 'no such order']] : [200, $row];
}
