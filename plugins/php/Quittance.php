<?php

/**
 * The client of Quittance for PHP 7.4 and later: one file, with nothing but ext-curl, ext-hash and ext-json.
 * It is for your server only: whoever has the key can create and read all invoices of the project.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

declare(strict_types=1);

namespace Quittance;

/** The API refused a request, or did not answer as the API does. Decide by `$errorCode`, and give the operator `$requestId`. */
final class ApiException extends \RuntimeException
{
    /** @var string Of the API, or TIMEOUT, CONNECTION_FAILED, ANSWER_TOO_LARGE, UNEXPECTED_ANSWER. */
    public $errorCode;
    /** @var int 0 without an answer. */
    public $status;
    /** @var string|null */
    public $requestId;
    /** @var int|null In seconds. */
    public $retryAfter;
    /** @var array<int, array{field: string, code: string, message: string}> Every field that is not valid. */
    public $errors;
    /** @var string|null "idempotencyKey" or "externalId", for IDEMPOTENCY_CONFLICT. */
    public $conflict;
    /** @var string|null The invoice that exists already, for IDEMPOTENCY_CONFLICT. */
    public $invoiceId;

    /** @param array<string, mixed> $problem The body of the API's answer. */
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

/** A webhook that is not genuine: answer 4xx, and do nothing. */
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

/** A client of one project. Wrong arguments throw an \InvalidArgumentException before anything is sent, all else an ApiException. */
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
     * @param array<string, mixed> $options `timeoutSeconds` of one attempt (10), `maxRetries` (2), `maxWaitSeconds` before each (5; an
     *   answer that asks for more is thrown at once), `allowInsecureHttp` to other machines than this one (false).
     */
    public function __construct(string $baseUrl, string $apiKey, array $options = [])
    {
        foreach ($options as $name => $value) {
            if (!array_key_exists($name, $this->options) || gettype($value) !== gettype($this->options[$name])) {
                throw new \InvalidArgumentException("option $name: there are timeoutSeconds, maxRetries, maxWaitSeconds and allowInsecureHttp");
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

    /** Dumps of the client show no key. @return array<string, string> */
    public function __debugInfo(): array
    {
        return ['baseUrl' => $this->baseUrl];
    }

    /** @return array<string> */
    public function __sleep(): array
    {
        throw new \LogicException('a client holds a secret key and is not serialised');
    }

    /**
     * Creates the invoice of one order attempt, or answers the one that the same key has made before. Store the key first, and call again with
     * the same arguments if anything goes wrong.
     *
     * @param array<string, mixed> $options `description`, `returnUrl`, `expiresInSeconds`, `metadata` (texts by name)
     * @return array{invoiceId: string, externalId: string, status: string, checkoutUrl: string, expiresAt: string}
     */
    public function createInvoice(string $amount, string $externalId, string $idempotencyKey, array $options = []): array
    {
        return $this->create(['amount' => self::readAmount($amount)], $externalId, $idempotencyKey, $options);
    }

    /**
     * The same for a price in another currency, such as "EUR", which the operator must have set a rate for.
     *
     * @param array<string, mixed> $options as of `createInvoice`
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
            throw new \InvalidArgumentException('amount must be a text such as "25.00", greater than 0');
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
     * The invoice, with what `$expand` names: "payment", "metadata" or both, in an array; `true` is "payment".
     *
     * @param bool|string|array<string> $expand
     * @return array<string, mixed>
     */
    public function getInvoice(string $invoiceId, $expand = false): array
    {
        self::checkId('invoiceId', $invoiceId, 'inv');
        $parts = is_bool($expand) ? ($expand ? ['payment'] : []) : (array) $expand;
        if (array_diff($parts, ['payment', 'metadata']) !== []) {
            throw new \InvalidArgumentException('expand: there are payment and metadata');
        }
        $invoice = $this->send('GET', "/v1/invoices/$invoiceId" . ($parts === [] ? '' : '?expand=' . implode(',', $parts)));
        return self::confirm($invoice, 'invoiceId', $invoiceId);
    }

    /** The invoice that your id has; null if none was made. @return array<string, mixed>|null */
    public function findInvoice(string $externalId): ?array
    {
        self::checkExternalId($externalId);
        $data = self::listOf($this->send('GET', '/v1/invoices?externalId=' . rawurlencode($externalId)), 'invoices');
        return $data === [] ? null : self::confirm($data[0], 'externalId', $externalId);
    }

    /**
     * One page of the invoices, oldest first; go on with `after` = `next` until that is null.
     *
     * @param array<string, mixed> $query `status`, `createdAfter`, `after`, `limit`
     * @return array{data: array<int, array<string, mixed>>, next: string|null}
     */
    public function listInvoices(array $query = []): array
    {
        return $this->page('/v1/invoices', $query, ['status', 'createdAfter', 'after', 'limit'], 'inv');
    }

    /**
     * One page of the transfers that paid nothing, each with its likely reason, oldest first.
     *
     * @param array<string, mixed> $query `kind`, `after`, `limit`
     * @return array{data: array<int, array<string, mixed>>, next: string|null}
     */
    public function listTransfers(array $query = []): array
    {
        return $this->page('/v1/transfers', $query, ['kind', 'after', 'limit'], 'trf');
    }

    /**
     * One page of the feed, oldest first. Go on behind the last event, or behind `next` where you gave `types`, until `hasMore` is false.
     *
     * @param array<string, mixed> $query `after`, `limit`, `types` (such as "invoice.paid,invoice.expired"), `wait`: how many seconds, 1 to
     *   30, to wait for the next event where there is none yet
     * @return array{data: array<int, array<string, mixed>>, hasMore: bool, latest: string|null}
     */
    public function listEvents(array $query = []): array
    {
        if (isset($query['wait'])) {
            self::checkNumber('wait', $query['wait'], 1, 30);
        }
        $page = $this->page('/v1/events', $query, ['after', 'limit', 'types', 'wait'], 'evt');
        if (!is_bool($page['hasMore'] ?? null)) {
            throw new ApiException('UNEXPECTED_ANSWER', 'the answer is no page of events', 200);
        }
        return $page;
    }

    /** Its page shows no way to pay any more; a payment that comes all the same still pays. @return array<string, mixed> */
    public function withdrawInvoice(string $invoiceId): array
    {
        self::checkId('invoiceId', $invoiceId, 'inv');
        return self::confirm($this->send('POST', "/v1/invoices/$invoiceId/withdraw"), 'invoiceId', $invoiceId);
    }

    /** The endpoints of the project. These calls need the scope `webhooks`. @return array<int, array<string, mixed>> */
    public function listEndpoints(): array
    {
        return self::listOf($this->send('GET', self::ENDPOINTS), 'endpoints');
    }

    /**
     * Adds an endpoint. Its `secret` is shown this one time; it is null if you gave your own.
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

    /** The endpoint, with its deliveries of 24 hours. @return array<string, mixed> */
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
     * Gives the endpoint a new secret, shown this one time.
     *
     * @param array<string, mixed> $options `overlap`: how long the former secret signs too ("0" to "30d"; "24h"), `secret`: your own
     * @return array<string, mixed>
     */
    public function rotateEndpointSecret(string $endpointId, array $options = []): array
    {
        return $this->endpoint('POST', $endpointId, '/rotate', self::readMembers($options, ['overlap' => 'string', 'secret' => 'string']));
    }

    /** Sends a ping now, and says what came of it. @return array<string, mixed> */
    public function testEndpoint(string $endpointId): array
    {
        return $this->endpoint('POST', $endpointId, '/test', []);
    }

    /** Stops deliveries until it is enabled. @return array<string, mixed> */
    public function disableEndpoint(string $endpointId, string $reason = ''): array
    {
        return $this->endpoint('POST', $endpointId, '/disable', ['reason' => $reason]);
    }

    /** @return array<string, mixed> */
    public function enableEndpoint(string $endpointId): array
    {
        return $this->endpoint('POST', $endpointId, '/enable', []);
    }

    /** Whether an order may be fulfilled: `PAID`, and yours. @param array<string, mixed>|null $invoice */
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
     * Takes an answer only if it is about the endpoint that was asked for.
     *
     * @param array<mixed> $endpoint
     * @return array<string, mixed>
     */
    private static function confirmEndpoint(array $endpoint, ?string $expected): array
    {
        $id = $endpoint['endpointId'] ?? null;
        if (!is_string($id) || ($expected !== null && $id !== $expected)) {
            throw new ApiException('UNEXPECTED_ANSWER', 'the answer is no endpoint, or another than asked for', 200);
        }
        return $endpoint;
    }

    /**
     * The optional members of a body, each of its kind.
     *
     * @param array<string, mixed> $given
     * @param array<string, string> $kinds
     * @return array<string, mixed>
     */
    private static function readMembers(array $given, array $kinds): array
    {
        foreach ($given as $name => $value) {
            if (!isset($kinds[$name])) {
                throw new \InvalidArgumentException("$name: there are " . implode(', ', array_keys($kinds)));
            }
            $texts = is_array($value) ? $value : [];
            if (gettype($value) !== $kinds[$name] || array_filter($texts, 'is_string') !== $texts) {
                throw new \InvalidArgumentException("$name must be of the type {$kinds[$name]}" . ($kinds[$name] === 'array' ? ', of texts' : ''));
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
            throw new \InvalidArgumentException('a text is not UTF-8');
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
                throw new \InvalidArgumentException("$name: there are " . implode(', ', $known));
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
            CURLOPT_FOLLOWLOCATION => false, // the key goes to no other place
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
            throw new ApiException('ANSWER_TOO_LARGE', "$what answered more than is taken", $status);
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
            $advice = $status >= 300 && $status < 400 ? 'a redirect, which is not followed; correct baseUrl' : 'which is not from the API';
            throw new ApiException('UNEXPECTED_ANSWER', "$what answered $status, $advice", $status, $retryAfter);
        }
        $detail = is_string($json['detail'] ?? null) ? substr($json['detail'], 0, 2000) : '';
        throw new ApiException($code, "$what answered $status $code: $detail", $status, $retryAfter, $json);
    }

    /**
     * An invoice with its five fields, and the one that was asked for: a cache or a proxy that mixes up answers must fulfil nothing.
     *
     * @param mixed $invoice
     * @return array<string, mixed>
     */
    private static function confirm($invoice, string $member, string $expected): array
    {
        foreach (self::INVOICE as $name) {
            if (!is_array($invoice) || !is_string($invoice[$name] ?? null)) {
                throw new ApiException('UNEXPECTED_ANSWER', 'the answer is no invoice', 200);
            }
        }
        if ($invoice[$member] !== $expected || preg_match('~\Ahttps?://[^\s"<>]+\z~', $invoice['checkoutUrl']) !== 1) {
            throw new ApiException('UNEXPECTED_ANSWER', 'the answer is another invoice than asked for', 200);
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
            throw new ApiException('UNEXPECTED_ANSWER', "the answer is no list of $what", 200);
        }
        return $data;
    }

    private static function checkExternalId(string $externalId): void
    {
        if (preg_match('/\A[^\0]{1,200}\z/us', $externalId) !== 1) {
            throw new \InvalidArgumentException('externalId must be 1 to 200 characters of UTF-8');
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
            throw new \InvalidArgumentException('baseUrl must be a URL such as https://pay.example.com, without user, query and fragment');
        }
        $isThisMachine = preg_match('/\A(localhost|127(\.\d{1,3}){3}|\[::1\])\z/i', $parts['host']) === 1;
        $scheme = strtolower($parts['scheme']);
        if ($scheme !== 'https' && !($scheme === 'http' && ($isThisMachine || $isInsecureAllowed))) {
            throw new \InvalidArgumentException('baseUrl must begin with https://, for every request carries the secret key');
        }
        return rtrim($text, '/');
    }

    /** The last six characters are the CRC-32 of all before, in base62: a key that was cut off, or mistyped, is told before it is sent. */
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
    /** Events have less than 20 KB. */
    public const MAX_BODY_BYTES = 65536;
    private const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

    /**
     * The event of a genuine webhook; every other throws a WebhookException. It is a hint that something happened: read the invoice before you
     * act. `$rawBody` are the bytes as they came (`file_get_contents('php://input')`), `$headers` are `$_SERVER` or an array by name.
     *
     * @param array<mixed> $headers
     * @param string|array<string> $secrets One, or all that are valid during a rotation.
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
            throw new WebhookException($ago > 0 ? 'TIMESTAMP_TOO_OLD' : 'TIMESTAMP_TOO_NEW', "webhook-timestamp is $ago s ago; is the clock right?");
        }
        $matches = 0;
        foreach ($keys as $key) {
            $right = hash_hmac('sha256', "$id.$timestamp.$rawBody", $key, true);
            foreach ($signatures as $given) {
                $matches += (int) hash_equals($right, $given); // all are compared, so that the time tells nothing
            }
        }
        if ($matches === 0) {
            throw new WebhookException('SIGNATURE_MISMATCH', 'no signature matches: another secret, or a body that was changed');
        }
        $event = json_decode($rawBody, true, 64, JSON_BIGINT_AS_STRING);
        $isEvent = is_array($event) && ($event['id'] ?? null) === $id && is_string($event['type'] ?? null) && is_array($event['data'] ?? null);
        if (!$isEvent || (isset($options['projectId']) && ($event['projectId'] ?? null) !== $options['projectId'])) {
            throw new WebhookException('EVENT_MALFORMED', 'rightly signed, but not the event of webhook-id, or of another project');
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
                throw new WebhookException('HEADER_MALFORMED', "the header $plain came more than once");
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
            throw new WebhookException('HEADER_MALFORMED', 'webhook-id or webhook-timestamp is not as Quittance writes it');
        }
        return [$values['webhook-id'], $values['webhook-timestamp'], $values['webhook-signature']];
    }

    /** The signatures of version v1; those of others are passed over. @return array<string> */
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
                throw new WebhookException('HEADER_MALFORMED', 'webhook-signature must be v1, and the base64 of 32 bytes, one space between two');
            }
        }
        if ($signatures === []) {
            throw new WebhookException('HEADER_MALFORMED', 'webhook-signature must hold 1 to 16 signatures, one of them v1');
        }
        return $signatures;
    }

    /**
     * The keys that the secrets hold. Throws an \InvalidArgumentException for a text that is no secret.
     *
     * @param mixed $secrets
     * @return array<string>
     */
    public static function readSecrets($secrets): array
    {
        $list = is_string($secrets) ? [$secrets] : $secrets;
        if (!is_array($list) || $list === [] || count($list) > 8) {
            throw new \InvalidArgumentException('give the webhook secret, or an array of 1 to 8');
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
