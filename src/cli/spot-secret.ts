/** Word counts of BIP-39 seed phrases. */
const SEED_WORD_COUNTS = [12, 15, 18, 21, 24];

/**
 * What kind of secret a text looks like, or `null`. People paste the wrong clipboard; a secret must not be repeated in an
 * error message, and its owner must hear that it is now in a shell's history.
 */
export function spotSecret(text: string): string | null {
  if (/^(0x)?[0-9a-f]{64}$/i.test(text) || /^[5KL][1-9A-HJ-NP-Za-km-z]{50,51}$/.test(text)) return 'a private key';
  if (/^6P[1-9A-HJ-NP-Za-km-z]{56}$/.test(text)) return 'an encrypted private key';
  if (/-----BEGIN [A-Z ]*PRIVATE KEY/.test(text)) return 'a private key';
  if (/^[xyztuvYZUV]prv/.test(text)) return 'an extended private key';
  if (/^\s*\{/.test(text) && /"(crypto|ciphertext|mnemonic|privateKey)"/i.test(text)) return 'a wallet file';
  if (/^(qt_(live|test)_|whsec_)/.test(text)) return 'a secret of Quittance';
  return isSeedPhrase(text.split(/[\s,;]+/)) ? 'a seed phrase' : null;
}

/** Whether words, each an argument or a line of its own perhaps, are a seed phrase; they may be numbered (`1. legal`). */
export function isSeedPhrase(words: readonly string[]): boolean {
  const bare = words.map((word) => word.replace(/^\d{1,2}[.):]?\s*/, '')).filter((word) => word !== '');
  return SEED_WORD_COUNTS.includes(bare.length) && bare.every((word) => /^\p{L}{2,10}$/u.test(word));
}
