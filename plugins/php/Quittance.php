<?php

/**
 * The Quittance client for PHP 7.4 and later: one file that needs only ext-curl, ext-hash and ext-json.
 * Use it only on your server, because anyone with the key can create invoices and read all invoices of the project.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

declare(strict_types=1);

namespace Quittance;

/** The API refused a request or returned an unexpected response. Base your decisions on `$errorCode`, and give the operator `$requestId`. */
final class ApiException extends \RuntimeException
{
    /** @var string A code of the API, or TIMEOUT, CONNECTION_FAILED, ANSWER_TOO_LARGE, UNEXPECTED_ANSWER. */
    public $errorCode;
    /** @var int The HTTP status; 0 if there was no response. */
    public $status;
    /** @var string|null */
    public $requestId;
    /** @var int|null In seconds. */
    public $retryAfter;
    /** @var array<int, array{field: string, code: string, message: string}> The invalid fields. */
    public $errors;
    /** @var string|null "idempotencyKey" or "externalId", for IDEMPOTENCY_CONFLICT. */
    public $conflict;
    /** @var string|null The existing invoice, for IDEMPOTENCY_CONFLICT. */
    public $invoiceId;

    /** @param array<string, mixed> $problem The body of the API's response. */
    public function __construct(string $errorCode, string $message, int $status = 0, ?int $retryAfter = null, array $problem = [])
    {
        parent::__construct($message);
        $this->errorCode = $errorCode;
        $this->status = $status;
        $this->retryAfter = $retryAfter;
        $this->requestId = self::text($problem, 'requestId');
        $this->conflict = self::text($problem, 'conflict');
        $this->invoiceId = self::text($problem, 'invoiceId');
        $errors = isset($problem['errors']) && is_array($problem['errors']) ? array_slice($problem['errors'], 0, 100) : [];
        $this->errors = array_values(array_filter($errors, static function ($error): bool {
            return is_array($error) && is_string($error['field'] ?? null) && is_string($error['code'] ?? null)
                && is_string($error['message'] ?? null);
        }));
    }

    /** @param array<string, mixed> $problem */
    private static function text(array $problem, string $member): ?string
    {
        return isset($problem[$member]) && is_string($problem[$member]) ? substr($problem[$member], 0, 255) : null;
    }
}

/** The webhook is not genuine: return 4xx and do nothing else. */
final class WebhookException extends \RuntimeException
{
    /** @var string HEADER_MISSING, HEADER_MALFORMED, TIMESTAMP_TOO_OLD, TIMESTAMP_TOO_NEW, SIGNATURE_MISMATCH, BODY_TOO_LARGE, EVENT_MALFORMED. */
    public $errorCode;

    public function __construct(string $errorCode, string $message)
    {
        parent::__construct($message);
        $this->errorCode = $errorCode;
    }
}

/** A client for one project. Invalid arguments throw an \InvalidArgumentException before anything is sent; other failures throw an ApiException. */
final class Client
{
    public const VERSION = '0.1.0';
    /** The largest page of the feed is 100 events of less than 20 KB. */
    private const MAX_ANSWER_BYTES = 4194304;
    private const MAX_HEADER_BYTES = 65536;
    private const TRANSIENT = [408, 425, 429, 500, 502, 503, 504];
    private const INVOICE = ['invoiceId', 'externalId', 'status', 'checkoutUrl', 'expiresAt'];
    private const ENDPOINTS = '/v1/webhook-endpoints';
    /** How long the API itself waits: for the receiver of a test, or for an event. */
    private const API_WAIT = 30;
    private const AMOUNT = '/\A(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?\z/';

    /** @var string */
    private $baseUrl;
    /** @var string */
    private $apiKey;
    /** @var array{timeoutSeconds: int, maxRetries: int, maxWaitSeconds: int, allowInsecureHttp: bool} */
    private $options = ['timeoutSeconds' => 10, 'maxRetries' => 2, 'maxWaitSeconds' => 5, 'allowInsecureHttp' => false];

    /**
     * @param array<string, mixed> $options `timeoutSeconds` for one attempt (10), `maxRetries` (2), `maxWaitSeconds` before each retry (5;
     *   if a response asks for a longer wait, its error is thrown immediately), `allowInsecureHttp` for other machines (false).
     */
    public function __construct(string $baseUrl, string $apiKey, array $options = [])
    {
        foreach ($options as $name => $value) {
            if (!array_key_exists($name, $this->options) || gettype($value) !== gettype($this->options[$name])) {
                $names = 'timeoutSeconds, maxRetries, maxWaitSeconds and allowInsecureHttp';
                throw new \InvalidArgumentException("option $name is not valid: the options are $names");
            }
            $this->options[$name] = $value;
        }
        self::checkNumber('timeoutSeconds', $this->options['timeoutSeconds'], 1, 600);
        self::checkNumber('maxRetries', $this->options['maxRetries'], 0, 10);
        self::checkNumber('maxWaitSeconds', $this->options['maxWaitSeconds'], 0, 60);
        $this->baseUrl = self::readBaseUrl($baseUrl, $this->options['allowInsecureHttp']);
        if (!self::isWholeKey($apiKey)) {
            throw new \InvalidArgumentException('apiKey must be the whole secret key of the project (qt_…)');
        }
        $this->apiKey = $apiKey;
    }

    /** Dumps of the client do not contain the key. @return array<string, string> */
    public function __debugInfo(): array
    {
        return ['baseUrl' => $this->baseUrl];
    }

    /** @return array<string> */
    public function __sleep(): array
    {
        throw new \LogicException('a client contains a secret key, so it cannot be serialised');
    }

    /**
     * Creates the invoice for one order attempt, or returns the invoice that the same key created before. Store the key first, and call again with
     * the same arguments if anything goes wrong.
     *
     * @param array<string, mixed> $options `description`, `returnUrl`, `expiresInSeconds`, `metadata` (strings by name)
     * @return array{invoiceId: string, externalId: string, status: string, checkoutUrl: string, expiresAt: string}
     */
    public function createInvoice(string $amount, string $externalId, string $idempotencyKey, array $options = []): array
    {
        return $this->create(['amount' => self::readAmount($amount)], $externalId, $idempotencyKey, $options);
    }

    /**
     * Does the same for a price in another currency, such as "EUR". The operator must have set a rate for this currency.
     *
     * @param array<string, mixed> $options as for `createInvoice`
     * @return array{invoiceId: string, externalId: string, status: string, checkoutUrl: string, expiresAt: string}
     */
    public function createInvoiceForPrice(string $amount, string $currency, string $externalId, string $idempotencyKey, array $options = []): array
    {
        $price = ['amount' => self::readAmount($amount), 'currency' => $currency];
        return $this->create(['price' => $price], $externalId, $idempotencyKey, $options);
    }

    private static function readAmount(string $amount): string
    {
        if (preg_match('/\A[0-9]+\.[0-9]{7,}\z/', $amount) === 1) {
            throw new \InvalidArgumentException('amount has too many decimals: at most 6');
        }
        if (preg_match(self::AMOUNT, $amount) !== 1 || strpbrk($amount, '123456789') === false) {
            throw new \InvalidArgumentException('amount must be a decimal string greater than 0, such as "25.00"');
        }
        return $amount;
    }

    /**
     * @param array<string, mixed> $wanted the amount, or the price
     * @param array<string, mixed> $options
     * @return array<string, mixed>
     */
    private function create(array $wanted, string $externalId, string $idempotencyKey, array $options): array
    {
        self::checkExternalId($externalId);
        if (preg_match('/\A[!-~]{1,255}\z/', $idempotencyKey) !== 1) {
            throw new \InvalidArgumentException('idempotencyKey must be 1 to 255 visible ASCII characters');
        }
        $input = $wanted + ['asset' => 'USDT', 'network' => 'TRON', 'externalId' => $externalId];
        $kinds = ['description' => 'string', 'returnUrl' => 'string', 'expiresInSeconds' => 'integer', 'metadata' => 'array'];
        $body = self::encode($input + self::readMembers($options, $kinds));
        $invoice = $this->send('POST', '/v1/invoices', ["Idempotency-Key: $idempotencyKey"], $body);
        return self::confirm($invoice, 'externalId', $externalId);
    }

    /**
     * Returns the invoice with the members in `$expand`: "payment", "metadata", or both in an array; `true` means "payment".
     *
     * @param bool|string|array<string> $expand
     * @return array<string, mixed>
     */
    public function getInvoice(string $invoiceId, $expand = false): array
    {
        self::checkId('invoiceId', $invoiceId, 'inv');
        $parts = is_bool($expand) ? ($expand ? ['payment'] : []) : (array) $expand;
        if (array_diff($parts, ['payment', 'metadata']) !== []) {
            throw new \InvalidArgumentException('expand must be payment, metadata or both');
        }
        $invoice = $this->send('GET', "/v1/invoices/$invoiceId" . ($parts === [] ? '' : '?expand=' . implode(',', $parts)));
        return self::confirm($invoice, 'invoiceId', $invoiceId);
    }

    /** Returns the invoice with your id, or null if it does not exist. @return array<string, mixed>|null */
    public function findInvoice(string $externalId): ?array
    {
        self::checkExternalId($externalId);
        $data = self::listOf($this->send('GET', '/v1/invoices?externalId=' . rawurlencode($externalId)), 'invoices');
        return $data === [] ? null : self::confirm($data[0], 'externalId', $externalId);
    }

    /**
     * Returns one page of invoices, oldest first. To continue, send `next` as `after` until `next` is null.
     *
     * @param array<string, mixed> $query `status`, `createdAfter`, `after`, `limit`
     * @return array{data: array<int, array<string, mixed>>, next: string|null}
     */
    public function listInvoices(array $query = []): array
    {
        return $this->page('/v1/invoices', $query, ['status', 'createdAfter', 'after', 'limit'], 'inv');
    }

    /**
     * Returns one page of transfers that paid no invoice, oldest first, each with its likely reason.
     *
     * @param array<string, mixed> $query `kind`, `after`, `limit`
     * @return array{data: array<int, array<string, mixed>>, next: string|null}
     */
    public function listTransfers(array $query = []): array
    {
        return $this->page('/v1/transfers', $query, ['kind', 'after', 'limit'], 'trf');
    }

    /**
     * Returns one page of the feed, oldest first. Continue after the last event, or after `next` if you set `types`, until `hasMore` is false.
     *
     * @param array<string, mixed> $query `after`, `limit`, `types` (such as "invoice.paid,invoice.expired"), `wait`: the number of seconds, 1 to
     *   30, to wait for the next event if there is none yet
     * @return array{data: array<int, array<string, mixed>>, hasMore: bool, latest: string|null}
     */
    public function listEvents(array $query = []): array
    {
        if (isset($query['wait'])) {
            self::checkNumber('wait', $query['wait'], 1, 30);
        }
        $page = $this->page('/v1/events', $query, ['after', 'limit', 'types', 'wait'], 'evt');
        if (!is_bool($page['hasMore'] ?? null)) {
            throw new ApiException('UNEXPECTED_ANSWER', 'the response is not a page of events', 200);
        }
        return $page;
    }

    /** The invoice's page stops asking for payment; a payment that arrives anyway still pays the invoice. @return array<string, mixed> */
    public function withdrawInvoice(string $invoiceId): array
    {
        self::checkId('invoiceId', $invoiceId, 'inv');
        return self::confirm($this->send('POST', "/v1/invoices/$invoiceId/withdraw"), 'invoiceId', $invoiceId);
    }

    /** Returns the endpoints of the project. These calls need the scope `webhooks`. @return array<int, array<string, mixed>> */
    public function listEndpoints(): array
    {
        return self::listOf($this->send('GET', self::ENDPOINTS), 'endpoints');
    }

    /**
     * Adds an endpoint. Its `secret` is returned only this time; it is null if you sent your own.
     *
     * @param array<string, mixed> $options `events` (["all"], or some event types), `description`, `secret`
     * @return array<string, mixed>
     */
    public function createEndpoint(string $url, array $options = []): array
    {
        $kinds = ['events' => 'array', 'description' => 'string', 'secret' => 'string'];
        $body = self::encode(['url' => $url] + self::readMembers($options, $kinds));
        return self::confirmEndpoint($this->send('POST', self::ENDPOINTS, [], $body), null);
    }

    /** Returns the endpoint with its deliveries in the last 24 hours. @return array<string, mixed> */
    public function getEndpoint(string $endpointId): array
    {
        return $this->endpoint('GET', $endpointId);
    }

    /** @param array<string, mixed> $changes `url`, `events`, `description` @return array<string, mixed> */
    public function updateEndpoint(string $endpointId, array $changes): array
    {
        $kinds = ['url' => 'string', 'events' => 'array', 'description' => 'string'];
        return $this->endpoint('PATCH', $endpointId, '', self::readMembers($changes, $kinds));
    }

    /**
     * Gives the endpoint a new secret, which is returned only this time.
     *
     * @param array<string, mixed> $options `overlap`: how long the previous secret also signs ("0" to "30d"; "24h"), `secret`: your own
     * @return array<string, mixed>
     */
    public function rotateEndpointSecret(string $endpointId, array $options = []): array
    {
        return $this->endpoint('POST', $endpointId, '/rotate', self::readMembers($options, ['overlap' => 'string', 'secret' => 'string']));
    }

    /** Sends a ping now and returns the result. @return array<string, mixed> */
    public function testEndpoint(string $endpointId): array
    {
        return $this->endpoint('POST', $endpointId, '/test', []);
    }

    /** Stops deliveries until you enable the endpoint. @return array<string, mixed> */
    public function disableEndpoint(string $endpointId, string $reason = ''): array
    {
        return $this->endpoint('POST', $endpointId, '/disable', ['reason' => $reason]);
    }

    /** @return array<string, mixed> */
    public function enableEndpoint(string $endpointId): array
    {
        return $this->endpoint('POST', $endpointId, '/enable', []);
    }

    /** Whether you may fulfil the order: the invoice is `PAID`, and has your id. @param array<string, mixed>|null $invoice */
    public static function isFulfillable(?array $invoice, string $externalId): bool
    {
        return $invoice !== null && ($invoice['status'] ?? null) === 'PAID' && ($invoice['externalId'] ?? null) === $externalId;
    }

    /** @param array<string, mixed>|null $input @return array<string, mixed> */
    private function endpoint(string $method, string $endpointId, string $below = '', ?array $input = null): array
    {
        self::checkId('endpointId', $endpointId, 'whe');
        $body = $input === null ? null : self::encode($input);
        return self::confirmEndpoint($this->send($method, self::ENDPOINTS . "/$endpointId$below", [], $body), $endpointId);
    }

    /**
     * Accepts a response only if it is about the requested endpoint.
     *
     * @param array<mixed> $endpoint
     * @return array<string, mixed>
     */
    private static function confirmEndpoint(array $endpoint, ?string $expected): array
    {
        $id = $endpoint['endpointId'] ?? null;
        if (!is_string($id) || ($expected !== null && $id !== $expected)) {
            throw new ApiException('UNEXPECTED_ANSWER', 'the response is not the requested endpoint', 200);
        }
        return $endpoint;
    }

    /**
     * Returns the optional members of a body, after checking their types.
     *
     * @param array<string, mixed> $given
     * @param array<string, string> $kinds
     * @return array<string, mixed>
     */
    private static function readMembers(array $given, array $kinds): array
    {
        foreach ($given as $name => $value) {
            if (!isset($kinds[$name])) {
                throw new \InvalidArgumentException("$name is not valid: the names are " . implode(', ', array_keys($kinds)));
            }
            $texts = is_array($value) ? $value : [];
            if (gettype($value) !== $kinds[$name] || array_filter($texts, 'is_string') !== $texts) {
                throw new \InvalidArgumentException("$name must be of the type {$kinds[$name]}" . ($kinds[$name] === 'array' ? ' of strings' : ''));
            }
        }
        if (isset($given['metadata'])) {
            $given['metadata'] = (object) $given['metadata'];
        }
        return $given;
    }

    /** @param array<string, mixed> $input */
    private static function encode(array $input): string
    {
        $json = json_encode((object) $input, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES);
        if ($json === false) {
            throw new \InvalidArgumentException('a string is not UTF-8');
        }
        return $json;
    }

    /**
     * @param array<string, mixed> $query
     * @param array<string> $known
     * @return array<string, mixed>
     */
    private function page(string $path, array $query, array $known, string $kind): array
    {
        foreach ($query as $name => $value) {
            if (!in_array($name, $known, true) || !(is_string($value) || is_int($value)) || $value === '') {
                throw new \InvalidArgumentException("$name is not valid: the parameters are " . implode(', ', $known));
            }
        }
        if (isset($query['after'])) {
            self::checkId('after', (string) $query['after'], $kind);
        }
        if (isset($query['limit'])) {
            self::checkNumber('limit', $query['limit'], 1, 100);
        }
        $page = $this->send('GET', $path . ($query === [] ? '' : '?' . http_build_query($query, '', '&', PHP_QUERY_RFC3986)));
        $page['data'] = self::listOf($page, $path);
        return $page;
    }

    /**
     * Every attempt has the same headers and bytes, so that the server recognises it by its key.
     *
     * @param array<string> $headers
     * @return array<mixed>
     */
    private function send(string $method, string $path, array $headers = [], ?string $body = null): array
    {
        for ($attempt = 0;; $attempt++) {
            try {
                return $this->attempt($method, $path, $headers, $body);
            } catch (ApiException $error) {
                $isTransient = in_array($error->errorCode, ['TIMEOUT', 'CONNECTION_FAILED'], true)
                    || in_array($error->status, self::TRANSIENT, true);
                $isTooLong = ($error->retryAfter ?? 0) > $this->options['maxWaitSeconds'];
                if (!$isTransient || $isTooLong || $attempt >= $this->options['maxRetries']) {
                    throw $error;
                }
                $backoffMs = min(500 * 2 ** $attempt, 1000 * $this->options['maxWaitSeconds']);
                usleep(1000 * max(intdiv($backoffMs, 2) + random_int(0, intdiv($backoffMs, 2)), 1000 * (int) $error->retryAfter));
            }
        }
    }

    /**
     * @param array<string> $headers
     * @return array<mixed>
     */
    private function attempt(string $method, string $path, array $headers, ?string $body): array
    {
        $answer = '';
        $headerBytes = 0;
        $headerLines = [];
        $handle = curl_init();
        curl_setopt_array($handle, [
            CURLOPT_URL => $this->baseUrl . $path,
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_HTTPHEADER => array_merge($headers, ["X-Api-Key: $this->apiKey", 'Accept: application/json', 'Expect:'],
                $body === null ? [] : ['Content-Type: application/json']),
            CURLOPT_USERAGENT => 'quittance-php/' . self::VERSION,
            CURLOPT_FOLLOWLOCATION => false, // the key must not go to another server
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_SSL_VERIFYPEER => true,
            CURLOPT_SSL_VERIFYHOST => 2,
            CURLOPT_CONNECTTIMEOUT => min(5, $this->options['timeoutSeconds']),
            CURLOPT_TIMEOUT => $this->options['timeoutSeconds'] + (preg_match('~/test\z|[?&]wait=~', $path) === 1 ? self::API_WAIT : 0),
            CURLOPT_NOSIGNAL => true,
            CURLOPT_HEADERFUNCTION => static function ($handle, string $line) use (&$headerBytes, &$headerLines): int {
                $headerBytes += strlen($line);
                $headerLines[] = $line;
                return $headerBytes > self::MAX_HEADER_BYTES ? -1 : strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($handle, string $chunk) use (&$answer): int {
                $answer .= $chunk;
                return strlen($answer) > self::MAX_ANSWER_BYTES ? -1 : strlen($chunk);
            },
        ]);
        if ($body !== null) {
            curl_setopt($handle, CURLOPT_POSTFIELDS, $body);
        }
        curl_exec($handle);
        $status = (int) curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
        $failure = curl_errno($handle);
        $what = "$method $this->baseUrl$path";
        if (strlen($answer) > self::MAX_ANSWER_BYTES || $headerBytes > self::MAX_HEADER_BYTES) {
            throw new ApiException('ANSWER_TOO_LARGE', "$what returned more than the client accepts", $status);
        }
        if ($failure !== 0) {
            $code = $failure === CURLE_OPERATION_TIMEDOUT ? 'TIMEOUT' : 'CONNECTION_FAILED';
            throw new ApiException($code, "$what failed: " . (curl_strerror($failure) ?? "error $failure"));
        }
        return self::readAnswer($what, $status, $answer, implode('', $headerLines));
    }

    /** @return array<mixed> */
    private static function readAnswer(string $what, int $status, string $answer, string $headers): array
    {
        $json = json_decode($answer, true, 64, JSON_BIGINT_AS_STRING);
        if ($status >= 200 && $status < 300 && is_array($json)) {
            return $json;
        }
        $retryAfter = preg_match('/^retry-after: *([0-9]{1,9})\s*$/im', $headers, $found) === 1 ? (int) $found[1] : null;
        $code = is_array($json) && is_string($json['code'] ?? null) ? $json['code'] : '';
        if (preg_match('/\A[A-Z_]{1,64}\z/', $code) !== 1) {
            $isRedirect = $status >= 300 && $status < 400;
            $advice = $isRedirect ? 'a redirect, which the client does not follow: correct baseUrl' : 'which does not come from the API';
            throw new ApiException('UNEXPECTED_ANSWER', "$what returned $status, $advice", $status, $retryAfter);
        }
        $detail = is_string($json['detail'] ?? null) ? substr($json['detail'], 0, 2000) : '';
        throw new ApiException($code, "$what returned $status $code: $detail", $status, $retryAfter, $json);
    }

    /**
     * Returns the invoice if it has its five fields and is the requested invoice, because a cache or proxy may mix up responses.
     *
     * @param mixed $invoice
     * @return array<string, mixed>
     */
    private static function confirm($invoice, string $member, string $expected): array
    {
        foreach (self::INVOICE as $name) {
            if (!is_array($invoice) || !is_string($invoice[$name] ?? null)) {
                throw new ApiException('UNEXPECTED_ANSWER', 'the response is not an invoice', 200);
            }
        }
        if ($invoice[$member] !== $expected || preg_match('~\Ahttps?://[^\s"<>]+\z~', $invoice['checkoutUrl']) !== 1) {
            throw new ApiException('UNEXPECTED_ANSWER', 'the response is not the requested invoice', 200);
        }
        return $invoice;
    }

    /**
     * @param array<mixed> $answer
     * @return array<int, array<string, mixed>>
     */
    private static function listOf(array $answer, string $what): array
    {
        $data = $answer['data'] ?? null;
        if (!is_array($data) || count(array_filter($data, 'is_array')) !== count($data) || array_values($data) !== $data) {
            throw new ApiException('UNEXPECTED_ANSWER', "the response is not a list of $what", 200);
        }
        return $data;
    }

    private static function checkExternalId(string $externalId): void
    {
        if (preg_match('/\A[^\0]{1,200}\z/us', $externalId) !== 1) {
            throw new \InvalidArgumentException('externalId must be 1 to 200 UTF-8 characters');
        }
    }

    private static function checkId(string $name, string $id, string $kind): void
    {
        if (preg_match("/\\A{$kind}_[0-9a-z]{5,100}\\z/", $id) !== 1) {
            throw new \InvalidArgumentException("$name must begin with {$kind}_");
        }
    }

    /** @param mixed $value */
    private static function checkNumber(string $name, $value, int $least, int $most): void
    {
        if (!is_int($value) || $value < $least || $value > $most) {
            throw new \InvalidArgumentException("$name must be a whole number from $least to $most");
        }
    }

    private static function readBaseUrl(string $text, bool $isInsecureAllowed): string
    {
        $parts = preg_match('/\A[!-~]+\z/', $text) === 1 ? parse_url($text) : false;
        if (!is_array($parts) || !isset($parts['scheme'], $parts['host']) || isset($parts['user']) || isset($parts['pass'])
            || isset($parts['query']) || isset($parts['fragment'])) {
            throw new \InvalidArgumentException('baseUrl must be a URL such as https://pay.example.com, without a user, query or fragment');
        }
        $isThisMachine = preg_match('/\A(localhost|127(\.\d{1,3}){3}|\[::1\])\z/i', $parts['host']) === 1;
        $scheme = strtolower($parts['scheme']);
        if ($scheme !== 'https' && !($scheme === 'http' && ($isThisMachine || $isInsecureAllowed))) {
            throw new \InvalidArgumentException('baseUrl must begin with https://, because every request carries the secret key');
        }
        return rtrim($text, '/');
    }

    /** The last six characters are the CRC-32 of the others, in base62. They reveal a key that was cut off or mistyped before it is sent. */
    private static function isWholeKey(string $key): bool
    {
        if (preg_match('/\Aqt_(live|test)_[0-9A-Za-z]{75}\z/', $key) !== 1) {
            return false;
        }
        $checksum = '';
        for ($rest = crc32(substr($key, 0, -6)); strlen($checksum) < 6; $rest = intdiv($rest, 62)) {
            $checksum = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'[$rest % 62] . $checksum;
        }
        return $checksum === substr($key, -6);
    }
}

/** Verifies webhooks, which have the format of Standard Webhooks. */
final class Webhook
{
    /** Events are smaller than 20 KB. */
    public const MAX_BODY_BYTES = 65536;
    private const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

    /**
     * Returns the event of a genuine webhook; throws a WebhookException for all others. An event is only a hint: read the invoice before you
     * act. `$rawBody` is the unchanged bytes (`file_get_contents('php://input')`); `$headers` is `$_SERVER` or an array by name.
     *
     * @param array<mixed> $headers
     * @param string|array<string> $secrets One secret, or all valid secrets during a rotation.
     * @param array{toleranceSeconds?: int, now?: int, projectId?: string} $options `projectId` refuses events of another project.
     * @return array<string, mixed>
     */
    public static function verify(string $rawBody, array $headers, $secrets, array $options = []): array
    {
        $keys = self::readSecrets($secrets);
        if (strlen($rawBody) > self::MAX_BODY_BYTES) {
            throw new WebhookException('BODY_TOO_LARGE', 'the body has more than ' . self::MAX_BODY_BYTES . ' bytes');
        }
        [$id, $timestamp, $header] = self::readHeaders($headers);
        $signatures = self::readSignatures($header);
        $ago = ($options['now'] ?? time()) - (int) $timestamp;
        if (abs($ago) > ($options['toleranceSeconds'] ?? 300)) {
            $code = $ago > 0 ? 'TIMESTAMP_TOO_OLD' : 'TIMESTAMP_TOO_NEW';
            throw new WebhookException($code, "webhook-timestamp differs from this machine's time by $ago s: check the clock");
        }
        $matches = 0;
        foreach ($keys as $key) {
            $right = hash_hmac('sha256', "$id.$timestamp.$rawBody", $key, true);
            foreach ($signatures as $given) {
                $matches += (int) hash_equals($right, $given); // all are compared, so that the time tells nothing
            }
        }
        if ($matches === 0) {
            throw new WebhookException('SIGNATURE_MISMATCH', 'no signature matches: the secret is wrong, or the body was changed');
        }
        $event = json_decode($rawBody, true, 64, JSON_BIGINT_AS_STRING);
        $isEvent = is_array($event) && ($event['id'] ?? null) === $id && is_string($event['type'] ?? null) && is_array($event['data'] ?? null);
        if (!$isEvent || (isset($options['projectId']) && ($event['projectId'] ?? null) !== $options['projectId'])) {
            $message = 'the signature is valid, but the body is not the event that webhook-id names, or belongs to another project';
            throw new WebhookException('EVENT_MALFORMED', $message);
        }
        return $event;
    }

    /**
     * @param array<mixed> $headers
     * @return array<string>
     */
    private static function readHeaders(array $headers): array
    {
        $values = [];
        foreach ($headers as $name => $value) {
            $plain = preg_replace('/\Ahttp-(?=webhook-)/', '', str_replace('_', '-', strtolower((string) $name)));
            if (!in_array($plain, self::HEADERS, true)) {
                continue;
            }
            $value = is_array($value) && count($value) === 1 ? reset($value) : $value;
            if (isset($values[$plain]) || !is_string($value)) {
                throw new WebhookException('HEADER_MALFORMED', "the header $plain was sent more than once");
            }
            $values[$plain] = $value;
        }
        foreach (self::HEADERS as $name) {
            if (!isset($values[$name])) {
                throw new WebhookException('HEADER_MISSING', "the header $name is missing");
            }
        }
        // Without a dot in the id, no byte can be moved from one signed part to the next.
        if (preg_match('/\A[A-Za-z0-9_-]{1,255}\z/', $values['webhook-id']) !== 1
            || preg_match('/\A[1-9][0-9]{0,11}\z/', $values['webhook-timestamp']) !== 1) {
            throw new WebhookException('HEADER_MALFORMED', 'webhook-id or webhook-timestamp does not have the format that Quittance sends');
        }
        return [$values['webhook-id'], $values['webhook-timestamp'], $values['webhook-signature']];
    }

    /** Returns the signatures of version v1, and ignores other versions. @return array<string> */
    private static function readSignatures(string $header): array
    {
        $items = strlen($header) > 4096 ? [] : explode(' ', $header);
        $signatures = [];
        foreach (count($items) > 16 ? [] : $items as $item) {
            $isOurs = strncmp($item, 'v1,', 3) === 0;
            $bytes = $isOurs ? base64_decode(substr($item, 3), true) : false;
            if ($isOurs && $bytes !== false && strlen($bytes) === 32 && base64_encode($bytes) === substr($item, 3)) {
                $signatures[] = $bytes;
            } elseif ($isOurs || preg_match('/\A[a-z0-9]{1,8},[\w+\/=-]{1,200}\z/', $item) !== 1) {
                throw new WebhookException('HEADER_MALFORMED', 'webhook-signature must contain "v1," and the base64 of 32 bytes');
            }
        }
        if ($signatures === []) {
            throw new WebhookException('HEADER_MALFORMED', 'webhook-signature must contain 1 to 16 signatures, at least one of version v1');
        }
        return $signatures;
    }

    /**
     * Returns the keys in the secrets. Throws an \InvalidArgumentException if a text is not a secret.
     *
     * @param mixed $secrets
     * @return array<string>
     */
    public static function readSecrets($secrets): array
    {
        $list = is_string($secrets) ? [$secrets] : $secrets;
        if (!is_array($list) || $list === [] || count($list) > 8) {
            throw new \InvalidArgumentException('pass the webhook secret, or an array of 1 to 8 secrets');
        }
        return array_map(static function ($secret): string {
            $isSecret = is_string($secret) && strncmp($secret, 'whsec_', 6) === 0;
            $key = $isSecret ? base64_decode(substr($secret, 6), true) : false;
            if ($key === false || strlen($key) < 24 || strlen($key) > 64) {
                throw new \InvalidArgumentException('a webhook secret is whsec_ and the base64 of 24 to 64 bytes');
            }
            return $key;
        }, $list);
    }
}
