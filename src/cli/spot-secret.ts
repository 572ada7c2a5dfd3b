/**
 * What kind of secret stands anywhere in a text, or `null`. People paste the wrong clipboard; a secret must not be repeated in
 * an error message, and its owner must hear that it is now in a shell's history.
 */
export function spotSecret(text: string): string | null {
  return spotKey(text) ?? (HEX_KEY.test(text) ? 'a private key' : null) ?? spotSeedPhrase(text);
}

/**
 * The same for what people write freely, which is kept: notes, and the labels and comments beside addresses. The id of a
 * transaction has the form of a private key (64 hex digits), so there it takes other words to be taken for one.
 */
export function spotSecretInNote(note: string): string | null {
  const isKey = HEX_KEY.test(note) && !isTransactionId(note);
  return spotKey(note) ?? (isKey ? 'a private key' : null) ?? spotSeedPhrase(note);
}

/** Whether the 64 hex digits in a note are called the id of a transaction, or stand beside other words and are not called a key. */
function isTransactionId(note: string): boolean {
  const around = note.replace(new RegExp(HEX_KEY, 'gi'), ' ');
  if (/\b(private|priv|secret)[\s_-]*key\b/i.test(around)) return false;
  if (/\b(tx\w*|transaction|hash|refund\w*)\b/i.test(around)) return true;
  return /\p{L}{2}/u.test(around) && !/\b(key|seed|secret)\b/i.test(around);
}

const HEX_KEY = /(?<![0-9a-z])(0x)?[0-9a-f]{64}(?![0-9a-z])/i;

/** All but the private key in hex. */
function spotKey(text: string): string | null {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY/.test(text)) return 'a private key';
  if (text.includes('{') && /"(crypto|ciphertext|mnemonic|privateKey)"/i.test(text)) return 'a wallet file';
  return WORD_FORMS.find(([form]) => form.test(text))?.[1] ?? null;
}

const WORD_FORMS: readonly (readonly [RegExp, string])[] = [
  [/(?<![0-9A-Za-z])[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![0-9A-Za-z])/, 'a private key'],
  // 32 bytes in base64.
  [/(?<![0-9A-Za-z+/])[0-9A-Za-z+/]{43}=(?![0-9A-Za-z=])/, 'a private key'],
  [/(?<![0-9A-Za-z])6P[1-9A-HJ-NP-Za-km-z]{56}(?![0-9A-Za-z])/, 'an encrypted private key'],
  [/(?<![0-9A-Za-z])[xyztuvYZUV]prv[1-9A-HJ-NP-Za-km-z]{20}/, 'an extended private key'],
  [/(?<![0-9A-Za-z])(qt_(live|test)_|whsec_)[0-9A-Za-z]/, 'a secret of Quittance'],
];

/** The fewest words of a seed phrase (BIP-39). */
const SEED_WORDS = 12;

/**
 * A run of 12 words or more that have the form of BIP-39 words, on one line or several, numbered or not. The words themselves
 * are not compared with BIP-39's, so that one typing mistake hides none. Sentences are told apart by what no seed phrase
 * has: a full stop, a short or a long word, a word that every language needs (`the`, `und`) or that notes are about (`paid`).
 */
function spotSeedPhrase(text: string): string | null {
  let run = 0;
  for (const [token] of text.normalize('NFC').matchAll(/[\p{L}\p{M}]+|\d+[.):]?|[^\s\p{L}\p{M}\d]/gu)) {
    if (SEED_WORD.test(token) && !NO_SEED_WORDS.has(token.toLowerCase())) run += 1;
    else if (!SEPARATOR.test(token)) run = 0;
    if (run === SEED_WORDS) return 'a seed phrase';
  }
  return null;
}

/** The lists of BIP-39: Latin with 3 to 9 letters, single Chinese characters, Japanese in Hiragana, Korean. */
const SEED_WORD = /^(\p{Script=Latin}{3,9}|\p{Script=Han}|\p{Script=Hiragana}{2,8}|\p{Script=Hangul}{2,4})$/u;

/** Between two words of a phrase: punctuation of lists, and numbers of two digits at most. */
const SEPARATOR = /^([,;"'[\]|/_*•-]|\d{1,2}[.):]?)$/;

/** None of them is in any list of BIP-39. Words that are shorter than 3 letters need not stand here. */
const NO_SEED_WORDS: ReadonlySet<string> = new Set(
  [
    'the and for was were not has had are but his her him she our its been from with their them than who which how',
    'why could would should did does too your some let per via',
    'der die das den dem des ein eine einen einem einer und oder ist sind war haben nicht mit von für auf aus bei',
    'nach zum zur sich auch noch nur wir sie ich bitte wurde wird dass durch über unter',
    'que los las del con por para una les pour une est dans avec che non per uma não della como',
    'paid pays pay payers payments sent sends send refund refunds refunded customer customers invoice asked asks',
    'wrote says said money usdt tron trx wallet moved kunde zahlung rechnung zurück doppelt gezahlt',
  ].flatMap((words) => words.split(' ')),
);
