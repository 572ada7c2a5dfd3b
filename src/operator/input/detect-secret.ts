/**
 * Finds the kind of secret that stands anywhere in a text, or `null`. People paste the wrong clipboard; an error message must not
 * repeat a secret, and its owner must hear that it is now in a shell's history.
 */
export function detectSecret(text: string): string | null {
  return spotKey(text) ?? (holdsKeyOrId(text) ? 'a private key' : null) ?? spotSeedPhrase(text);
}

/**
 * The same for what people write freely, which is kept: notes, and the labels and comments beside addresses. The id of a
 * transaction has the form of a private key, so there it is none where it is called an id and nothing speaks of a key.
 */
export function detectSecretInNote(note: string): string | null {
  return spotKey(note) ?? (holdsKeyInNote(note.normalize('NFC')) ? 'a private key' : null) ?? spotSeedPhrase(note);
}

/** Whether a text holds 32 bytes in hex or base64: a private key, or the id of a transaction. */
export function holdsKeyOrId(text: string): boolean {
  return text.search(KEY_OR_ID) !== -1;
}

function holdsKeyInNote(note: string): boolean {
  const found = [...note.matchAll(KEY_OR_ID)];
  if (found.length === 0) return false;
  return SPEAKS_OF_KEYS.test(note) || found.some(({ index }) => !CALLED_ID.test(note.slice(0, index).slice(-50)));
}

/** 32 bytes in hex (as on TRON), or in base64 (as on TON). */
const KEY_OR_ID = /(?<![0-9a-z])(0x)?[0-9a-f]{64}(?![0-9a-z])|(?<![0-9a-z+/])[0-9a-z+/]{43}=(?![0-9a-z=])/gi;

/** The word for an id directly before it, also in a link (`/transaction/…`) or with `id` after the word. */
const CALLED_ID =
  /((?<![\p{L}\p{N}])(tx(s|n|ns|id|ids|hash)?|transa\p{L}{1,8}|hash|транзакц\p{L}{1,3}|х[еэ]ш)|交易|哈希)([\s_-]{0,2}(id|hash|n[or]|哈希))?[\s:=#/("'[.]{0,4}$/iu;

/** Parts of words as well, as in `TRON_PRIVATE_KEY`; but for Turkey, where payers live, and for what contains `cle`. */
const SPEAKS_OF_KEYS =
  /priv|secret|(?<!tur)key|seed|mnemonic|schl[üu]ssel|clave|(?<!\p{L})cl[ée]s?(?!\p{L})|ключ|私钥|密钥/iu;

/** All but what may be the id of a transaction. */
function spotKey(text: string): string | null {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY/.test(text)) return 'a private key';
  if (text.includes('{') && /"(crypto|ciphertext|mnemonic|privateKey)"/i.test(text)) return 'a wallet file';
  return WORD_FORMS.find(([form]) => form.test(text))?.[1] ?? null;
}

const WORD_FORMS: readonly (readonly [RegExp, string])[] = [
  [/(?<![0-9A-Za-z])[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![0-9A-Za-z])/, 'a private key'],
  [/(?<![0-9A-Za-z])6P[1-9A-HJ-NP-Za-km-z]{56}(?![0-9A-Za-z])/, 'an encrypted private key'],
  [/(?<![0-9A-Za-z])[xyztuvYZUV]prv[1-9A-HJ-NP-Za-km-z]{20}/, 'an extended private key'],
  [/AGE-SECRET-KEY-(PQ-)?1/i, 'a secret key of age'],
  [/(?<![0-9A-Za-z])(qt_(live|test)_|whsec_)[0-9A-Za-z]|(?<![0-9A-Za-z])qa_[0-9a-z]{26}/, 'a secret of Quittance'],
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
  for (const [token] of text.normalize('NFC').matchAll(/[\p{L}\p{M}]+|#?\d+(\s?[.):=])?|[^\s\p{L}\p{M}\d]/gu)) {
    if (SEED_WORD.test(token) && !NO_SEED_WORDS.has(token.toLowerCase())) run += 1;
    else if (!SEPARATOR.test(token)) run = 0;
    if (run === SEED_WORDS) return 'a seed phrase';
  }
  return null;
}

/** The lists of BIP-39: Latin with 3 to 9 letters, single Chinese characters, Japanese in Hiragana, Korean. */
const SEED_WORD = /^(\p{Script=Latin}{3,9}|\p{Script=Han}|\p{Script=Hiragana}{2,8}|\p{Script=Hangul}{2,4})$/u;

/** Between two words of a phrase: punctuation of lists, and numbers of two digits at most (`1. word`, `#1 word`, `1=word`). */
const SEPARATOR = /^([,;"'[\]|/_*•+~·\\→-]|#?\d{1,2}(\s?[.):=])?)$/;

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
