/** What whoever receives webhooks must do, in this order. */
export const RECEIVER_RULES = [
  'Verify `webhook-signature` on the raw bytes of the body, before anything parses them. It is `v1,` and the base64 of an HMAC-SHA256 over `{webhook-id}.{webhook-timestamp}.{body}`; the key is what base64 decodes from your secret behind `whsec_`. There may be several, with a space between: one that fits is enough. Compare in constant time.',
  'Refuse a `webhook-timestamp` (Unix seconds) more than 5 minutes from your clock.',
  'Answer 2xx within 15 seconds, also to a `type` that you do not know. Anything else is tried again, for more than three days.',
  'Handle each `webhook-id` once: the same event may come twice.',
  'Read the invoice before you fulfil, and fulfil only if its `status` is `PAID` and its `externalId` is the one that you stored.',
] as const;
