#!/usr/bin/env bash
# Quittance from a shell, with bash 4, curl and openssl. A shell is no web server: fulfil from the feed, or from another language.
#   quittance.sh create EXTERNAL_ID AMOUNT        the invoice; run it again after any failure, it never makes a second one
#   quittance.sh read INVOICE_ID                  the invoice as it is now
#   quittance.sh is-paid INVOICE_ID EXTERNAL_ID   succeeds only if this order may be fulfilled
#   quittance.sh feed [EVENT_ID]                  up to 100 events after this one, or from the first
#   quittance.sh verify HEADERS BODY [AT]         a captured webhook: a file of the headers, one a line, and one of the raw body;
#                                                 AT is the Unix time at which it came, now if left out
# Environment: QUITTANCE_URL and QUITTANCE_API_KEY; for verify only QUITTANCE_WEBHOOK_SECRET.
set -euo pipefail
export LC_ALL=C # so that the classes of characters below are ASCII

main() {
  case "${1-} $#" in
    'create 3' | 'feed 1' | 'feed 2' | 'verify 3' | 'verify 4') "$@" ;;
    'read 2') read_invoice "$2" ;;
    'is-paid 3') is_paid "$2" "$3" ;;
    *) die 'usage: quittance.sh create EXTERNAL_ID AMOUNT | read INVOICE_ID | is-paid INVOICE_ID EXTERNAL_ID | feed [EVENT_ID] | verify HEADERS BODY [AT]' ;;
  esac
}

die() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}

# The API key goes in through a file descriptor, because arguments can be seen by every user of the machine. Redirects are not
# followed, so it goes to no other place.
ask() {
  local path=$1
  shift
  curl --silent --show-error --max-time 10 --max-filesize 4194304 \
    --header @<(printf 'X-Api-Key: %s\n' "$QUITTANCE_API_KEY") "$@" "$QUITTANCE_URL$path"
}

create() {
  local external_id=$1 amount=$2 key_file=order-$1.key body answer status pause
  # These characters need no escaping, neither in JSON nor in the name of a file.
  [[ $external_id =~ ^[A-Za-z0-9_-]{1,64}$ ]] || die 'EXTERNAL_ID must be 1 to 64 of A-Z a-z 0-9 _ -'
  [[ $amount =~ ^[0-9.]{1,30}$ ]] || die 'AMOUNT must be a decimal number'
  # The key is stored before the first attempt; of two runs at once only one makes the file.
  (set -o noclobber && openssl rand -hex 16 >"$key_file") 2>/dev/null || [[ -s $key_file ]] || die "cannot write $key_file"
  body="{\"amount\":\"$amount\",\"asset\":\"USDT\",\"network\":\"TRON\",\"externalId\":\"$external_id\"}"
  for pause in 1 2 4 0; do
    # No answer, 429 and 5xx: the same key and the same bytes again.
    answer=$(ask /v1/invoices --header "Idempotency-Key: $(<"$key_file")" --header 'Content-Type: application/json' \
      --data-raw "$body" --write-out '\n%{http_code}') || true
    status=${answer##*$'\n'}
    if [[ $status == 201 ]]; then
      printf '%s\n' "${answer%$'\n'*}"
      return
    fi
    [[ $status == 000 || $status == 429 || $status == 5?? ]] || break
    sleep "$pause"
  done
  die "Quittance answered $status: ${answer%$'\n'*}"
}

read_invoice() {
  [[ $1 =~ ^inv_[0-9a-z]{26}$ ]] || die 'INVOICE_ID must be an invoiceId (inv_…)'
  ask "/v1/invoices/$1" --fail-with-body
}

# Inside a text of JSON a quote is always escaped, so these match members only. Better: jq -e '.status == "PAID" and …'
is_paid() {
  local invoice
  [[ $2 =~ ^[A-Za-z0-9_-]{1,64}$ ]] || die 'EXTERNAL_ID must be 1 to 64 of A-Z a-z 0-9 _ -'
  invoice=$(read_invoice "$1")
  [[ $invoice == *'"status":"PAID"'* && $invoice == *"\"externalId\":\"$2\""* ]] || die "not to be fulfilled: $invoice"
}

feed() {
  [[ ${1-} =~ ^(evt_[0-9a-z]{26})?$ ]] || die 'EVENT_ID must be the id of an event (evt_…)'
  ask "/v1/events?limit=100${1:+&after=$1}" --fail-with-body
}

verify() {
  local body=$2 at=${3:-$(date +%s)} id timestamp signatures key nonce expected given
  local signature='v[0-9a-z]+,[A-Za-z0-9+/=]+'
  [[ $at =~ ^[1-9][0-9]{0,11}$ ]] || die 'AT must be Unix seconds'
  id=$(header "$1" webhook-id)
  timestamp=$(header "$1" webhook-timestamp)
  signatures=$(header "$1" webhook-signature)
  [[ $id =~ ^[A-Za-z0-9_-]{1,255}$ ]] || die 'webhook-id is malformed'
  [[ $timestamp =~ ^[1-9][0-9]{0,11}$ ]] || die 'webhook-timestamp is malformed'
  [[ $signatures =~ ^$signature( $signature){0,15}$ ]] || die 'webhook-signature is malformed'
  ((timestamp - at <= 300 && at - timestamp <= 300)) || die 'webhook-timestamp is more than 300 s away'
  (($(wc -c <"$body") <= 65536)) || die 'the body is too large'
  [[ $QUITTANCE_WEBHOOK_SECRET =~ ^whsec_[A-Za-z0-9+/]{32,86}={0,2}$ ]] || die 'QUITTANCE_WEBHOOK_SECRET is not a whsec_…'
  key=$(printf '%s' "${QUITTANCE_WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
  ((${#key} >= 48 && ${#key} <= 128)) || die 'QUITTANCE_WEBHOOK_SECRET must have 24 to 64 bytes'
  expected=v1,$({ printf '%s.%s.' "$id" "$timestamp" && cat "$body"; } | hmac_sha256 "$key")
  # Compared by their HMACs under a random key, so that the time tells nothing about the signature.
  nonce=$(openssl rand -hex 32)
  expected=$(printf '%s' "$expected" | hmac_sha256 "$nonce")
  for given in $signatures; do
    if [[ $(printf '%s' "$given" | hmac_sha256 "$nonce") == "$expected" ]]; then
      printf 'genuine: %s\n' "$id"
      return
    fi
  done
  die 'no signature matches'
}

# The only value of a header, however its name is capitalised.
header() {
  local name value found='' count=0
  while IFS=: read -r name value; do
    [[ ${name,,} == "$2" ]] || continue
    value=${value#"${value%%[! ]*}"}
    found=${value%$'\r'}
    count=$((count + 1))
  done <"$1"
  ((count == 1)) || die "$2 must come once, not $count times"
  printf '%s' "$found"
}

# In base64, of standard input; the key is hex of at most 64 bytes. openssl's own HMAC takes its key as an argument, which
# every user of the machine can see; so it is made of two plain SHA-256, as RFC 2104 says.
hmac_sha256() {
  local key=$1 inner='' outer='' at byte
  while ((${#key} < 128)); do key+=00; done
  for ((at = 0; at < 128; at += 2)); do
    byte=$((16#${key:at:2}))
    printf -v inner '%s\\x%02x' "$inner" $((byte ^ 0x36))
    printf -v outer '%s\\x%02x' "$outer" $((byte ^ 0x5c))
  done
  { printf '%b' "$outer" && { printf '%b' "$inner" && cat; } | openssl dgst -sha256 -binary; } |
    openssl dgst -sha256 -binary | openssl base64 -A
}

main "$@"
