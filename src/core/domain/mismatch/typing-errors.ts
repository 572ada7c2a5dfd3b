import { asked, exactly, type Slip, type Suspect } from './finding.ts';

/**
 * How often each kind of typing mistake occurs among payers who send a wrong amount. These numbers are estimates, but
 * `mismatch-corpus.test.ts` checks the resulting diagnoses.
 */
const PRIOR = { ONE_DIGIT_WRONG: 0.1, DIGITS_SWAPPED: 0.05, DIGIT_MISSING: 0.03, DIGIT_ADDED: 0.02 } as const;

type TypingCode = keyof typeof PRIOR;

/** How one amount may have been mistyped as another; `detail` completes "… with". */
type Origin = { code: TypingCode; ways: number; places: number; detail: string; evidence: Slip['evidence'] };

/**
 * Returns all amounts that may have been mistyped as the one that arrived, each with its mistake. For 25.000137, there are about 300.
 * Payers type all six decimals of a payable amount, and wallets cut off a seventh.
 */
export function typingOrigins(amountMicro: bigint): ReadonlyMap<bigint, Origin> {
  const before = recent.get(amountMicro);
  if (before !== undefined) return before;
  const origins = computeOrigins(amountMicro);
  if (recent.size >= MAX_RECENT) recent.clear();
  recent.set(amountMicro, origins);
  return origins;
}

/**
 * The results are cached, because Quittance analyses a transfer's amount when it searches for invoices, and again when it weighs each of
 * them.
 */
const MAX_RECENT = 20;
const recent = new Map<bigint, ReadonlyMap<bigint, Origin>>();

function computeOrigins(amountMicro: bigint): Map<bigint, Origin> {
  const origins = new Map<bigint, Origin>();
  const text = exactly(amountMicro);
  const add = (original: string, origin: Omit<Origin, 'ways'>) => {
    // Payable amounts have no leading zeros.
    if (/^0[0-9]/.test(original)) return;
    const micro = BigInt(original.replace('.', ''));
    if (micro === amountMicro || micro <= 0n) return;
    const known = origins.get(micro);
    if (known === undefined) origins.set(micro, { ...origin, ways: 1 });
    else if (known.code === origin.code) known.ways += 1;
  };
  addReplaced(text, add);
  addSwapped(text, add);
  addMissing(text, add);
  addAdded(text, add);
  return origins;
}

/** Returns the mistake that a payer made in typing this invoice's amount. */
export function typingError(invoice: Suspect, amountMicro: bigint, origin: Origin): Slip {
  return {
    code: origin.code,
    weight: (PRIOR[origin.code] * origin.ways) / origin.places,
    evidence: origin.evidence,
    explanation: `${exactly(amountMicro)} arrived: this is ${asked(invoice)} with ${origin.detail}`,
  };
}

type Add = (original: string, origin: Omit<Origin, 'ways'>) => void;

const DIGITS = [...'0123456789'];

function replaceAt(text: string, at: number, length: number, by: string): string {
  return text.slice(0, at) + by + text.slice(at + length);
}

function addReplaced(text: string, add: Add): void {
  const places = (text.length - 1) * 9;
  for (let at = 0; at < text.length; at++) {
    const typed = text.charAt(at);
    if (typed === '.') continue;
    for (const digit of DIGITS) {
      if (digit === typed) continue;
      add(replaceAt(text, at, 1, digit), {
        code: 'ONE_DIGIT_WRONG',
        places,
        detail: `one digit wrong: ${typed} instead of ${digit} ${placeName(text, at)}`,
        evidence: { typed, expected: digit, place: placeName(text, at) },
      });
    }
  }
}

function addSwapped(text: string, add: Add): void {
  const point = text.indexOf('.');
  const places = text.length - 2;
  for (let at = 0; at < text.length - 1; at++) {
    if (at === point) continue;
    // The digits just before and after the decimal point count as neighbours, too.
    const next = at + 1 === point ? at + 2 : at + 1;
    const [left, right] = [text.charAt(at), text.charAt(next)];
    if (left === right) continue;
    add(replaceAt(replaceAt(text, at, 1, right), next, 1, left), {
      code: 'DIGITS_SWAPPED',
      places,
      detail: `two neighbouring digits swapped: ${left}${right} instead of ${right}${left}`,
      evidence: { typed: `${left}${right}`, expected: `${right}${left}` },
    });
  }
}

/**
 * If a digit before the decimal point is missing, the digits before it shift. If one after the point is missing, there's room for another
 * digit at the end.
 */
function addMissing(text: string, add: Add): void {
  const point = text.indexOf('.');
  const places = text.length;
  const describe = (digit: string) => ({
    code: 'DIGIT_MISSING' as const,
    places,
    detail: `a ${digit} left out`,
    evidence: { missing: digit },
  });
  for (const digit of DIGITS) {
    for (let at = 0; at <= point; at++) add(replaceAt(text, at, 0, digit), describe(digit));
    if (!text.endsWith('0')) continue;
    // If the last decimal is missing, it's truncation, which is a different cause.
    for (let at = point + 1; at < text.length - 1; at++) {
      add(replaceAt(text.slice(0, -1), at, 0, digit), describe(digit));
    }
  }
}

/** Most wallets refuse a seventh decimal; only a few cut it off. */
const SEVENTH_DECIMAL = 0.3;

function addAdded(text: string, add: Add): void {
  const point = text.indexOf('.');
  for (let at = 0; at < text.length; at++) {
    if (at === point || (at === 0 && point === 1)) continue;
    const digit = text.charAt(at);
    const isDoubled = digit === text.charAt(at - 1) || digit === text.charAt(at + 1);
    const origin = {
      code: 'DIGIT_ADDED' as const,
      // A key pressed twice is as frequent as all other added digits together.
      places: text.length * (isDoubled ? 2 : 20),
      detail: isDoubled ? `a ${digit} typed twice` : `an extra ${digit}`,
      evidence: { added: digit },
    };
    const shortened = replaceAt(text, at, 1, '');
    if (at < point) {
      add(shortened, origin);
      continue;
    }
    for (const lost of DIGITS) {
      add(shortened + lost, {
        ...origin,
        places: origin.places / SEVENTH_DECIMAL,
        detail: `${origin.detail}: ${text}${lost}, truncated to six decimals`,
      });
    }
  }
}

function placeName(text: string, at: number): string {
  const point = text.indexOf('.');
  return at > point ? `at decimal ${at - point}` : `at digit ${point - at} before the point`;
}
