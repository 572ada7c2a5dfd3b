// A shop that accepts USDT through Quittance. Java 17 or newer, no dependencies: java Receiver.java
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

import static java.nio.charset.StandardCharsets.UTF_8;

public final class Receiver {
  static final String URL = System.getenv("QUITTANCE_URL");
  static final String API_KEY = System.getenv("QUITTANCE_API_KEY");
  static final byte[] KEY = decodeSecret(System.getenv("QUITTANCE_WEBHOOK_SECRET"));
  static final int MAX_BODY_BYTES = 64 * 1024; // a webhook has less than 20 KB
  static final HttpClient CLIENT = HttpClient.newBuilder() // follows no redirects, so the key goes to no other place
      .connectTimeout(Duration.ofSeconds(5)).build();

  record Answer(int status, String json) {}

  public static void main(String[] arguments) throws IOException {
    System.setProperty("sun.net.httpserver.maxReqTime", "15"); // seconds, for a client that sends nothing
    var port = Integer.parseInt(System.getenv().getOrDefault("PORT", "3000"));
    var server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port), 0);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", Receiver::serve);
    server.start();
    System.out.println("listening on http://127.0.0.1:" + server.getAddress().getPort());
  }

  static void serve(HttpExchange exchange) {
    try (exchange) {
      Answer answer;
      try {
        answer = route(exchange);
      } catch (Exception error) {
        System.err.println(error);
        answer = new Answer(500, "{\"error\":\"internal\"}"); // Quittance sends the webhook again
      }
      byte[] content = answer.json().getBytes(UTF_8);
      exchange.getResponseHeaders().set("Content-Type", "application/json");
      exchange.sendResponseHeaders(answer.status(), content.length == 0 ? -1 : content.length);
      if (content.length > 0) exchange.getResponseBody().write(content);
    } catch (IOException error) {
      System.err.println(error);
    }
  }

  static Answer route(HttpExchange exchange) throws Exception {
    byte[] body = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES + 1);
    if (body.length > MAX_BODY_BYTES) return new Answer(413, "{\"error\":\"too large\"}");
    String path = exchange.getRequestURI().getPath();
    switch (exchange.getRequestMethod() + " " + path) {
      case "POST /hooks/quittance":
        return receiveWebhook(exchange.getRequestHeaders(), body);
      // In your shop, both require a login, and the amount comes from your catalogue, never from the browser.
      case "POST /orders":
        return placeOrder(Json.read(body));
      default:
        if (path.startsWith("/orders/")) return Store.show(path.substring("/orders/".length()));
        return new Answer(404, "{\"error\":\"not found\"}");
    }
  }

  // --- Creating an invoice

  static Answer placeOrder(Json order) throws Exception {
    String externalId = order.text("externalId");
    String amount = order.text("amount");
    if (!matches("[A-Za-z0-9_-]{1,64}", externalId) || !matches("[0-9.]{1,30}", amount)) {
      return new Answer(400, "{\"error\":\"give externalId (letters, digits, _ and -) and amount as texts\"}");
    }
    // Stored before Quittance is asked. The order's id is also the idempotency key: asking again finds the same invoice.
    if (!Store.add(externalId, amount).equals(amount)) {
      return new Answer(409, "{\"error\":\"there is such an order with another amount\"}");
    }
    Json invoice = createInvoice(externalId, amount);
    return new Answer(201, "{\"invoiceId\":\"%s\",\"checkoutUrl\":\"%s\"}"
        .formatted(invoice.text("invoiceId"), invoice.text("checkoutUrl")));
  }

  static Json createInvoice(String externalId, String amount) throws Exception {
    // Both are of characters that JSON does not escape.
    String body = "{\"amount\":\"%s\",\"asset\":\"USDT\",\"network\":\"TRON\",\"externalId\":\"%s\"}"
        .formatted(amount, externalId);
    var request = request("/v1/invoices").header("Content-Type", "application/json")
        .header("Idempotency-Key", externalId).POST(HttpRequest.BodyPublishers.ofString(body)).build();
    for (long pauseMs = 500;; pauseMs *= 2) {
      // No answer, 429 and 5xx: the same key and the same bytes again, which never makes a second invoice.
      long retryAfterMs = 0;
      try {
        var response = CLIENT.send(request, HttpResponse.BodyHandlers.ofByteArray());
        int status = response.statusCode();
        if (status == 201) return Json.read(response.body());
        if (pauseMs > 2_000 || (status != 429 && status < 500)) throw refusal(response);
        String seconds = response.headers().firstValue("Retry-After").orElse("");
        if (matches("[0-9]{1,5}", seconds)) retryAfterMs = Long.parseLong(seconds) * 1_000;
      } catch (IOException error) {
        if (pauseMs > 2_000) throw error;
      }
      Thread.sleep(Math.min(Math.max(pauseMs, retryAfterMs), 5_000));
    }
  }

  static HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(URL + path)).header("X-Api-Key", API_KEY).timeout(Duration.ofSeconds(5));
  }

  static RuntimeException refusal(HttpResponse<byte[]> response) {
    return new IllegalStateException("Quittance: " + response.statusCode() + " " + new String(response.body(), UTF_8));
  }

  // --- Receiving a webhook

  static Answer receiveWebhook(Map<String, List<String>> headers, byte[] body) throws Exception {
    String eventId = verify(headers, body);
    if (eventId == null) return new Answer(400, "{\"error\":\"not a genuine webhook\"}");
    Json event = Json.read(body);
    // Every other type is answered with 2xx too, also one that is not known yet.
    if (!"invoice.paid".equals(event.text("type")) || Store.wasHandled(eventId)) return new Answer(204, "");
    // The event is a hint; what counts is what Quittance says now. If it cannot be asked, the event comes again.
    String path = "/v1/invoices/" + URLEncoder.encode(event.object("data").text("invoiceId"), UTF_8);
    var response = CLIENT.send(request(path).build(), HttpResponse.BodyHandlers.ofByteArray());
    if (response.statusCode() != 200) throw refusal(response);
    Json invoice = Json.read(response.body());
    if ("PAID".equals(invoice.text("status"))) Store.fulfilOnce(eventId, invoice.text("externalId"));
    return new Answer(204, "");
  }

  /** The event's id if the request is genuine, else null. `body` is the raw bytes. */
  static String verify(Map<String, List<String>> headers, byte[] body) throws GeneralSecurityException {
    String id = only(headers.get("Webhook-id")); // as this server writes the names of headers
    String timestamp = only(headers.get("Webhook-timestamp"));
    String signatures = only(headers.get("Webhook-signature"));
    String signature = "v[0-9a-z]+,[A-Za-z0-9+/=]+";
    if (!matches("[A-Za-z0-9_-]{1,255}", id) || !matches("[1-9][0-9]{0,11}", timestamp)) return null;
    if (!matches(signature + "( " + signature + "){0,15}", signatures)) return null;
    if (Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300) return null;
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(KEY, "HmacSHA256"));
    mac.update((id + "." + timestamp + ".").getBytes(UTF_8));
    byte[] expected = ("v1," + Base64.getEncoder().encodeToString(mac.doFinal(body))).getBytes(UTF_8);
    for (String given : signatures.split(" ")) {
      if (MessageDigest.isEqual(given.getBytes(UTF_8), expected)) return id; // in constant time
    }
    return null;
  }

  static String only(List<String> values) {
    return values != null && values.size() == 1 ? values.get(0) : null;
  }

  static boolean matches(String format, String text) {
    return text != null && Pattern.matches(format, text);
  }

  static byte[] decodeSecret(String secret) {
    if (matches("whsec_[A-Za-z0-9+/]{32,86}={0,2}", secret)) {
      byte[] key = Base64.getDecoder().decode(secret.substring("whsec_".length()));
      if (key.length >= 24 && key.length <= 64) return key;
    }
    throw new IllegalArgumentException("QUITTANCE_WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes");
  }

  // --- Replace by your database: this store is one process's memory, and a restart forgets every order.
  //   create table orders (external_id text primary key, amount text not null, state text not null default 'waiting');
  //   create table handled_events (id text primary key);

  static final class Store {
    private static final Map<String, String> amounts = new HashMap<>();
    private static final Map<String, Integer> fulfilments = new HashMap<>();
    private static final Set<String> handled = new HashSet<>();

    /** insert into orders (external_id, amount) values (?, ?) on conflict do nothing; and the amount that is stored now. */
    static synchronized String add(String externalId, String amount) {
      amounts.putIfAbsent(externalId, amount);
      return amounts.get(externalId);
    }

    /** select 1 from handled_events where id = ? */
    static synchronized boolean wasHandled(String eventId) {
      return handled.contains(eventId);
    }

    /**
     * One transaction, of which one caller comes through; a statement that returns no row ends it:
     *   insert into handled_events (id) values (?) on conflict do nothing returning id;
     *   update orders set state = 'paid' where external_id = ? and state = 'waiting' returning external_id;
     * Only what is quick, for the answer must come within 15 s: mails and parcels are for a job that takes the paid orders.
     */
    static synchronized void fulfilOnce(String eventId, String externalId) {
      boolean isNew = handled.add(eventId);
      boolean isWaiting = amounts.containsKey(externalId) && !fulfilments.containsKey(externalId);
      if (isNew && isWaiting) fulfilments.merge(externalId, 1, Integer::sum);
    }

    static synchronized Answer show(String externalId) {
      if (!amounts.containsKey(externalId)) return new Answer(404, "{\"error\":\"no such order\"}");
      int count = fulfilments.getOrDefault(externalId, 0);
      return new Answer(200, "{\"state\":\"%s\",\"fulfilments\":%d}".formatted(count > 0 ? "paid" : "waiting", count));
    }
  }

  // --- The JDK reads no JSON. Use your library: this one keeps texts and objects, and passes over everything else.

  record Json(Map<String, Object> members) {
    private static final Pattern TOKEN = Pattern.compile("\\G\\s*([\\[\\]{}:,]|\"(?:[^\"\\\\]++|\\\\.)*+\"|[\\w.+-]++)");
    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))");

    static Json read(byte[] bytes) {
      Matcher tokens = TOKEN.matcher(new String(bytes, UTF_8));
      if (value(next(tokens), tokens, 0) instanceof Json object) return object;
      throw new IllegalArgumentException("not a JSON object");
    }

    String text(String name) {
      return members.get(name) instanceof String text ? text : null;
    }

    Json object(String name) {
      return members.get(name) instanceof Json object ? object : new Json(Map.of());
    }

    private static Object value(String token, Matcher tokens, int depth) {
      if (depth > 32) throw new IllegalArgumentException("JSON with more than 32 levels");
      if (token.startsWith("\"")) return unquote(token);
      if (!token.equals("{") && !token.equals("[")) return null;
      var members = new HashMap<String, Object>();
      for (String next = next(tokens); !next.equals(token.equals("{") ? "}" : "]"); next = next(tokens)) {
        if (next.equals(",")) continue;
        if (token.equals("[")) {
          value(next, tokens, depth + 1);
        } else {
          if (!next(tokens).equals(":")) throw new IllegalArgumentException("not JSON");
          members.put(unquote(next), value(next(tokens), tokens, depth + 1));
        }
      }
      return token.equals("{") ? new Json(members) : null;
    }

    private static String next(Matcher tokens) {
      if (tokens.find()) return tokens.group(1);
      throw new IllegalArgumentException("not JSON");
    }

    private static String unquote(String token) {
      return ESCAPE.matcher(token.substring(1, token.length() - 1)).replaceAll(escape -> {
        if (escape.group(1) != null) return Matcher.quoteReplacement("" + (char) Integer.parseInt(escape.group(1), 16));
        int at = "bfnrt".indexOf(escape.group(2));
        return Matcher.quoteReplacement(at < 0 ? escape.group(2) : "\b\f\n\r\t".substring(at, at + 1));
      });
    }
  }
}
