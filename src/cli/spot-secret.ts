/** Word counts of BIP-39 seed phrases. */
const SEED_WORD_COUNTS = [12, 15, 18, 21, 24];

/**
 * What kind of secret a text looks like, or `null`. People paste the wrong clipboard; a secret must not be repeated in an
 * error message, and its owner must hear that it is now in a shell's history.
 */
export function spotSecret(text: string): string | null {
  if (/^(0x)?[0-9a-f]{64}$/i.test(text) || /^[5KL][1-9A-HJ-NP-Za-km-z]{50,51}$/.test(text)) return 'a private key';
  if (/^[xyztuvYZUV]prv/.test(text)) return 'an extended private key';
  if (/^(qt_(live|test)_|whsec_)/.test(text)) return 'a secret of Quittance';
  return isSeedPhrase(text.split(/[\s,]+/)) ? 'a seed phrase' : null;
}

/** Whether words, each an argument of its own perhaps, are a seed phrase. */
export function isSeedPhrase(words: readonly string[]): boolean {
  return SEED_WORD_COUNTS.includes(words.length) && words.every((word) => /^\p{L}{2,10}$/u.test(word));
}
