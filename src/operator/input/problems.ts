import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { say, type Text } from '../../domain/message.ts';

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

/** A field of an input cannot be taken. `reason` goes on behind its name: `is "odd": choose dead or delivered`, or `: this looks like a seed phrase`. */
export class FieldError extends AppError {
  readonly field: string;
  readonly reason: Text;

  constructor(field: string, reason: Text) {
    super('INVALID_ARGUMENT', fieldProblem(field, reason).message);
    this.field = field;
    this.reason = reason;
  }
}

/** Refuses a field that holds a secret, which is not repeated: who gave it must hear where it now stands. */
export function refuseSecret(field: string, kind: string | null): void {
  if (kind !== null) throw new FieldError(field, say`: ${{ secret: kind }}`);
}

/** The same as one problem of an input, which may have several. */
export function fieldProblem(field: string, reason: Text): FieldProblem {
  const gap = String(reason).startsWith(':') ? '' : ' ';
  return { subject: say`${{ field }}`, message: say`${{ field }}${gap}${reason}` };
}

/** Runs what reads a part of the input. Its mistakes are added to `problems`, so that all of a command is reported at once. */
export function gatherProblems<Input>(problems: FieldProblem[], read: () => Input): Input | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof FieldError) problems.push(fieldProblem(error.field, error.reason));
    else if (error instanceof AppError && error.problems.length > 0) problems.push(...error.problems);
    else throw error;
    return undefined;
  }
}

/** The problem of a name of a project or key, or `null`. The schema sets the bound, in characters. */
export function nameProblem(name: string): string | null {
  const secret = detectSecret(name);
  if (secret !== null)
    return `looks like ${secret}, but names are stored and shown in plain text: give another name. If it is a real secret, replace it`;
  const length = [...name].length;
  if (length === 0) return 'is empty: give 1 to 100 characters';
  if (length > 100) return `has ${length} characters: give at most 100`;
  if (/\p{Cc}/u.test(name)) return 'contains a control character, such as a line break: remove it';
  return null;
}

/** A given value for a message: quoted and short. A text that looks like a secret is not shown. */
export function clip(text: string): string {
  return detectSecret(text) === null ? quote(text) : `(${text.length} characters, not shown)`;
}

/** A value of the ledger, for a message: quoted and short. */
export function quote(text: string): string {
  return quoteWhole(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** A value in quotes as JSON, in which nothing can rewrite what a terminal shows. */
export function quoteWhole(text: string): string {
  return printableJson(JSON.stringify(text));
}

/** Stored text for a sentence: short enough to read. The data has all of it. */
export function shorten(text: string, length = 80): string {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : text;
}

/** Control characters in stored text could rewrite what the terminal shows. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '�');
}

/**
 * The same for JSON, which stays JSON of the same value: characters are escaped, but for the line feeds between its parts. JSON
 * itself does so only below U+0020, which leaves other control characters and marks of direction.
 */
export function printableJson(json: string): string {
  return json.replace(/(?!\n)\p{C}/gu, (character) => character.split('').map(escapeUnit).join(''));
}

/** Escapes a code unit of UTF-16. */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
