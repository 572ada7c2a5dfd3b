// A shop that accepts USDT through Quittance. Go 1.22 or newer, standard library only: go run receiver.go
package main

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const maxBodyBytes = 64 << 10 // a webhook has less than 20 KB

var (
	baseURL, apiKey = os.Getenv("QUITTANCE_URL"), os.Getenv("QUITTANCE_API_KEY")
	key             = decodeSecret(os.Getenv("QUITTANCE_WEBHOOK_SECRET"))
	client          = &http.Client{
		Timeout: 5 * time.Second,
		// The key goes to no other place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "3000"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(serve), ReadTimeout: 15 * time.Second, MaxHeaderBytes: 16 << 10}
	log.Fatal(server.Serve(listener))
}

type object map[string]any

func serve(w http.ResponseWriter, r *http.Request) {
	status, answer, err := route(w, r)
	if err != nil {
		log.Print(err)
		status, answer = 500, object{"error": "internal"} // Quittance sends the webhook again
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if answer != nil {
		json.NewEncoder(w).Encode(answer)
	}
}

func route(w http.ResponseWriter, r *http.Request) (int, object, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	switch {
	case err != nil:
		return 413, object{"error": "too large"}, nil
	case r.Method == "POST" && r.URL.Path == "/hooks/quittance":
		return receiveWebhook(r.Header, body)
	// In your shop, both require a login, and the amount comes from your catalogue, never from the browser.
	case r.Method == "POST" && r.URL.Path == "/orders":
		return placeOrder(body)
	case r.Method == "GET" && strings.HasPrefix(r.URL.Path, "/orders/"):
		return showOrder(strings.TrimPrefix(r.URL.Path, "/orders/"))
	}
	return 404, object{"error": "not found"}, nil
}

// --- Creating an invoice

type invoice struct{ InvoiceID, CheckoutURL, ExternalID, Status string }

func placeOrder(body []byte) (int, object, error) {
	var input struct{ ExternalID, Amount string }
	if json.Unmarshal(body, &input) != nil || !idFormat.MatchString(input.ExternalID) {
		return 400, object{"error": "give externalId (letters, digits, _ and -) and amount as texts"}, nil
	}
	// Stored before Quittance is asked. The order's id is also the idempotency key: asking again finds the same invoice.
	if stored := addOrder(input.ExternalID, input.Amount); stored != input.Amount {
		return 409, object{"error": "there is such an order with another amount"}, nil
	}
	created, err := createInvoice(input.ExternalID, input.Amount)
	return 201, object{"invoiceId": created.InvoiceID, "checkoutUrl": created.CheckoutURL}, err
}

func createInvoice(externalID, amount string) (invoice, error) {
	body, _ := json.Marshal(object{"amount": amount, "asset": "USDT", "network": "TRON", "externalId": externalID})
	for pause := 500 * time.Millisecond; ; pause *= 2 {
		// No answer, 429 and 5xx: the same key and the same bytes again, which never makes a second invoice.
		created, status, retryAfter, err := askQuittance("POST", "/v1/invoices", body, externalID)
		if err == nil || pause > 2*time.Second || (status != 0 && status != 429 && status < 500) {
			return created, err
		}
		time.Sleep(min(max(pause, retryAfter), 5*time.Second))
	}
}

// The status is 0 if there was no answer. Every status but 200 and 201 is an error.
func askQuittance(method, path string, body []byte, key string) (answer invoice, status int, retryAfter time.Duration, err error) {
	request, err := http.NewRequest(method, baseURL+path, bytes.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("X-Api-Key", apiKey)
	if method == "POST" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := client.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return
	}
	status = response.StatusCode
	if status != 200 && status != 201 {
		seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16)
		return answer, status, time.Duration(seconds) * time.Second, fmt.Errorf("quittance: %d %s", status, content)
	}
	return answer, status, 0, json.Unmarshal(content, &answer)
}

// --- Receiving a webhook

func receiveWebhook(headers http.Header, body []byte) (int, object, error) {
	eventID := verify(headers, body)
	if eventID == "" {
		return 400, object{"error": "not a genuine webhook"}, nil
	}
	var event struct {
		Type string
		Data struct{ InvoiceID string }
	}
	// Every other type is answered with 2xx too, also one that is not known yet.
	if err := json.Unmarshal(body, &event); err != nil || event.Type != "invoice.paid" || wasHandled(eventID) {
		return 204, nil, err
	}
	// The event is a hint; what counts is what Quittance says now. If it cannot be asked, the event comes again.
	current, _, _, err := askQuittance("GET", "/v1/invoices/"+url.PathEscape(event.Data.InvoiceID), nil, "")
	if err == nil && current.Status == "PAID" {
		fulfilOnce(eventID, current.ExternalID)
	}
	return 204, nil, err
}

var (
	idFormat         = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)
	timestampFormat  = regexp.MustCompile(`^[1-9][0-9]{0,11}$`)
	signaturesFormat = regexp.MustCompile(`^v[0-9a-z]+,[A-Za-z0-9+/=]+( v[0-9a-z]+,[A-Za-z0-9+/=]+){0,15}$`)
)

// The event's id if the request is genuine, else "". body is the raw bytes.
func verify(headers http.Header, body []byte) string {
	ids, times, lists := headers["Webhook-Id"], headers["Webhook-Timestamp"], headers["Webhook-Signature"]
	if len(ids) != 1 || len(times) != 1 || len(lists) != 1 {
		return ""
	}
	id, timestamp, signatures := ids[0], times[0], lists[0]
	if !idFormat.MatchString(id) || !timestampFormat.MatchString(timestamp) || !signaturesFormat.MatchString(signatures) {
		return ""
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if apart := time.Now().Unix() - seconds; err != nil || apart > 300 || apart < -300 {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, given := range strings.Split(signatures, " ") {
		if hmac.Equal([]byte(given), expected) {
			return id
		}
	}
	return ""
}

func decodeSecret(secret string) []byte {
	text, hasPrefix := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if !hasPrefix || err != nil || len(key) < 24 || len(key) > 64 {
		log.Fatal("QUITTANCE_WEBHOOK_SECRET must be whsec_ and the base64 of 24 to 64 bytes")
	}
	return key
}

// --- Replace by your database: this store is one process's memory, and a restart forgets every order.
//
//	create table orders (external_id text primary key, amount text not null, state text not null default 'waiting');
//	create table handled_events (id text primary key);

type order struct {
	amount      string
	isPaid      bool
	fulfilments int
}

var (
	mutex   sync.Mutex
	orders  = map[string]*order{}
	handled = map[string]bool{}
)

// Answers the amount of the order that is stored now.
//
//	insert into orders (external_id, amount) values ($1, $2) on conflict do nothing;
//	select amount from orders where external_id = $1;
func addOrder(externalID, amount string) string {
	mutex.Lock()
	defer mutex.Unlock()
	if orders[externalID] == nil {
		orders[externalID] = &order{amount: amount}
	}
	return orders[externalID].amount
}

// select exists (select from handled_events where id = $1)
func wasHandled(eventID string) bool {
	mutex.Lock()
	defer mutex.Unlock()
	return handled[eventID]
}

// One transaction, of which one caller comes through; a statement that returns no row ends it.
//
//	insert into handled_events (id) values ($1) on conflict do nothing returning id;
//	update orders set state = 'paid' where external_id = $2 and state = 'waiting' returning external_id;
//
// Only what is quick belongs here, for the answer must come within 15 s: mails and parcels are for a job that takes the paid orders.
func fulfilOnce(eventID, externalID string) {
	mutex.Lock()
	defer mutex.Unlock()
	paid := orders[externalID]
	if !handled[eventID] && paid != nil && !paid.isPaid {
		paid.isPaid = true
		paid.fulfilments++
	}
	handled[eventID] = true
}

func showOrder(externalID string) (int, object, error) {
	mutex.Lock()
	defer mutex.Unlock()
	shown := orders[externalID]
	if shown == nil {
		return 404, object{"error": "no such order"}, nil
	}
	state := "waiting"
	if shown.isPaid {
		state = "paid"
	}
	return 200, object{"state": state, "fulfilments": shown.fulfilments}, nil
}
