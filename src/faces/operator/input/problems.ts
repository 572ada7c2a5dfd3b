import { AppError, type FieldProblem } from '../../../core/domain/errors.ts';
import { say, type Text } from '../../../core/domain/message.ts';

/**
 * Returns the kind of secret that a text contains, or `null`. People sometimes paste a secret by mistake. An error message must not repeat the
 * secret, and must warn that it may now be in the shell's history.
 */
export function detectSecret(text: string): string | null {
  return spotKey(text) ?? (holdsKeyOrId(text) ? 'a private key' : null) ?? spotSeedPhrase(text);
}

/**
 * Like `detectSecret`, but for free text that is stored: notes, and labels and comments next to addresses. A transaction id has the same
 * form as a private key, so in such text it's accepted if it's called an id and nothing nearby mentions a key.
 */
export function detectSecretInNote(note: string): string | null {
  return spotKey(note) ?? (holdsKeyInNote(note.normalize('NFC')) ? 'a private key' : null) ?? spotSeedPhrase(note);
}

/** Whether a text contains 32 bytes in hex or base64, which may be a private key or a transaction id. */
export function holdsKeyOrId(text: string): boolean {
  return text.search(KEY_OR_ID) !== -1;
}

function holdsKeyInNote(note: string): boolean {
  const found = [...note.matchAll(KEY_OR_ID)];
  if (found.length === 0) return false;
  return SPEAKS_OF_KEYS.test(note) || found.some(({ index }) => !CALLED_ID.test(note.slice(0, index).slice(-50)));
}

/** 32 bytes in hex (as on TRON) or base64 (as on TON). */
const KEY_OR_ID = /(?<![0-9a-z])(0x)?[0-9a-f]{64}(?![0-9a-z])|(?<![0-9a-z+/])[0-9a-z+/]{43}=(?![0-9a-z=])/gi;

/** Matches a word for an id immediately before it, also in a link (`/transaction/…`) or followed by `id`. */
const CALLED_ID =
  /((?<![\p{L}\p{N}])(tx(s|n|ns|id|ids|hash)?|transa\p{L}{1,8}|hash|транзакц\p{L}{1,3}|х[еэ]ш)|交易|哈希)([\s_-]{0,2}(id|hash|n[or]|哈希))?[\s:=#/("'[.]{0,4}$/iu;

/** Also matches parts of words, as in `TRON_PRIVATE_KEY`. Doesn't match Turkey, where payers live, nor words that merely contain `cle`. */
const SPEAKS_OF_KEYS =
  /priv|secret|(?<!tur)key|seed|mnemonic|schl[üu]ssel|clave|(?<!\p{L})cl[ée]s?(?!\p{L})|ключ|私钥|密钥/iu;

/** Recognises every kind of secret except 32 bytes that may be a transaction id. */
function spotKey(text: string): string | null {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY/.test(text)) return 'a private key';
  if (text.includes('{') && /"(crypto|ciphertext|mnemonic|privateKey)"/i.test(text)) return 'a wallet file';
  return WORD_FORMS.find(([form]) => form.test(text))?.[1] ?? null;
}

const WORD_FORMS: readonly (readonly [RegExp, string])[] = [
  [/(?<![0-9A-Za-z])[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![0-9A-Za-z])/, 'a private key'],
  [/(?<![0-9A-Za-z])6P[1-9A-HJ-NP-Za-km-z]{56}(?![0-9A-Za-z])/, 'an encrypted private key'],
  [/(?<![0-9A-Za-z])[xyztuvYZUV]prv[1-9A-HJ-NP-Za-km-z]{20}/, 'an extended private key'],
  [/AGE-SECRET-KEY-(PQ-)?1/i, 'an age secret key'],
  [/(?<![0-9A-Za-z])(qt_(live|test)_|whsec_)[0-9A-Za-z]|(?<![0-9A-Za-z])qa_[0-9a-z]{26}/, 'a Quittance secret'],
];

/** The minimum number of words in a seed phrase (BIP-39). */
const SEED_WORDS = 12;

/**
 * Finds 12 or more consecutive words that look like BIP-39 words, on one line or several, numbered or not. The words aren't compared with
 * BIP-39's lists, so that a typing mistake doesn't hide a phrase. A sentence is recognised by a feature that no seed phrase has: a full
 * stop, a very short or long word, a common word such as `the` or `und`, or a word typical of notes such as `paid`.
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

/** The words in the BIP-39 lists: Latin with 3 to 9 letters, single Chinese characters, Japanese in Hiragana, Korean. */
const SEED_WORD = /^(\p{Script=Latin}{3,9}|\p{Script=Han}|\p{Script=Hiragana}{2,8}|\p{Script=Hangul}{2,4})$/u;

/** Text between two words in a phrase: list punctuation, and numbers of up to two digits (`1. word`, `#1 word`, `1=word`). */
const SEPARATOR = /^([,;"'[\]|/_*•+~·\\→-]|#?\d{1,2}(\s?[.):=])?)$/;

/** None of these words is in a BIP-39 list. Words with fewer than 3 letters don't have to be listed. */
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

/**
 * Thrown if an input field is refused. `reason` follows the field's name: `is "odd": choose dead or delivered`, or `: this looks like a
 * seed phrase`.
 */
export class FieldError extends AppError {
  readonly field: string;
  readonly reason: Text;

  constructor(field: string, reason: Text) {
    super('INVALID_ARGUMENT', fieldProblem(field, reason).message);
    this.field = field;
    this.reason = reason;
  }
}

/** Describes a field's problem as one of several problems with an input. */
export function fieldProblem(field: string, reason: Text): FieldProblem {
  const gap = String(reason).startsWith(':') ? '' : ' ';
  return { subject: say`${{ field }}`, message: say`${{ field }}${gap}${reason}` };
}

/** Reads part of an input and adds its mistakes to `problems` so that a command can report all of them together. */
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

/** Returns the problem with a project's or key's name, or `null`. The database schema sets the limit, in characters. */
export function nameProblem(name: string): string | null {
  const secret = detectSecret(name);
  if (secret !== null)
    return `looks like ${secret}, but names are stored and shown in plain text: use another name. If it is a real secret, replace it`;
  const length = [...name].length;
  if (length === 0) return 'is empty: use 1 to 100 characters';
  if (length > 100) return `has ${length} characters: use at most 100`;
  if (/\p{Cc}/u.test(name)) return 'contains a control character, such as a line break: remove it';
  return null;
}

/** Quotes and shortens an input value for a message. If it looks like a secret, it isn't shown. */
export function clip(text: string): string {
  return detectSecret(text) === null ? quote(text) : `(${text.length} characters, not shown)`;
}

/** Quotes and shortens a stored value for a message. */
export function quote(text: string): string {
  return quoteWhole(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** Quotes a value as JSON, escaped so that it can't control a terminal. */
export function quoteWhole(text: string): string {
  return printableJson(JSON.stringify(text));
}

/** Shortens stored text for a sentence. The data in the response contains all of it. */
export function shorten(text: string, length = 80): string {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : text;
}

/** Replaces control characters, because in stored text they could rewrite the terminal's output. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '�');
}

/**
 * Escapes control characters in JSON without changing its value. The line feeds between its parts stay as they are. JSON itself only
 * escapes characters below U+0020, and leaves other control characters and direction marks.
 */
export function printableJson(json: string): string {
  return json.replace(/(?!\n)\p{C}/gu, (character) => character.split('').map(escapeUnit).join(''));
}

/** Escapes one UTF-16 code unit. */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
