import { readFileSync } from 'node:fs';
import type { MutantResult } from './run-mutants.ts';

type Reason = readonly [line: string, reason: string];

const TYPE = 'only the compiler needs it: the value is always there';
const LATER = 'what it lets through is refused later on the same way';
const FAST = 'a short way to the same result';
const MORE = 'more invoices are looked at than need be, and the same is said of them';
const BOUND = 'nothing meets the very bound';
const ITSELF = 'what arrived itself is passed over';

/** Why no test detects the mutants of a line, by file and part of the line. */
const REASONS: Readonly<Record<string, readonly Reason[]>> = {
  'src/faces/api/read-create-input.ts': [
    ["(asset = '', network = '')", TYPE],
    ['errors.length > 0 || requestedMicro === null', TYPE],
  ],
  'src/core/domain/policy.ts': [
    ['const firstBlock', FAST],
    ['const lastBlock', FAST],
    ['if (firstBlock >= lastBlock)', FAST],
    ['prefix * 10n < range.belowMicro', FAST],
    ['draws < count * 4', 'one draw more is as good'],
  ],
  'src/core/domain/brand/colour.ts': [
    ['?.[1]?.toLowerCase', TYPE],
    ['>= LEAST_ACCENT_CONTRAST', BOUND],
    ['>= LEAST_INK_CONTRAST', 'the card has that contrast with ink, whatever tints it a little'],
    ['contrastOf(accent, WHITE) >=', BOUND],
    ['/^#[0-9a-f]{6}$/.test', 'only the palette calls it'],
    ['kept < 1 && step < CHROMA_STEPS', 'more steps come closer than a channel can show'],
    ['value <= 0.04045', BOUND],
    ['clipped <= 0.0031308', BOUND],
    ['light >= -GAMUT_SLACK', BOUND],
  ],
  'src/core/domain/invoice.ts': [['default:', TYPE]],
  'src/core/domain/brand/logo.ts': [
    ['at + 25 <= bytes.length', 'the end must stand behind it'],
    ['at + 9 <= bytes.length', 'the end must stand behind it'],
  ],
  'src/core/domain/lookup/lookup.ts': [
    ['default:', TYPE],
    ["case 'duplicate'", 'the invoice of a duplicate is paid, of which the next case says the same'],
    ['arrivedMicro < payableMicro', 'equal amounts went before'],
    ['invoice.solidNumber !== null', LATER],
  ],
  'src/core/domain/mismatch/fee-errors.ts': [
    ['OTHER_CENTS.uptoMicro', '1 USDT is a typical fee, and never gets here'],
    ['if (amountMicro >= payableMicro)', FAST],
    ['MAX_SHARE) - WHOLE_SHARE', FAST],
  ],
  'src/core/domain/mismatch/rank-causes.ts': [
    ['amountMicro <= TINY_MICRO', 'of 100 only the first digit is not 0'],
    ['share >= WORTH_SHOWING', BOUND],
    ['>= best.weight * EQUALLY_NEAR', BOUND],
    ['share > 0', 'what has no share has no weight'],
    ['invoice === undefined ? 0n', 'no two findings of one cause are without an invoice'],
    ['invoice === undefined', LATER],
    ['best * WORTH_COMPARING', BOUND],
    ['>= own.weight * EQUALLY_NEAR', BOUND],
    ['weight * EQUALLY_NEAR > own.weight', BOUND],
  ],
  'src/core/domain/mismatch/rounding-errors.ts': [
    ['differenceMicro >= ONE_USDT', FAST],
    ['amountMicro > payableMicro', 'equal amounts went before'],
    ['value < 0n', 'equal amounts went before'],
  ],
  'src/core/domain/mismatch/search-ranges.ts': [
    ['.flatMap((f) =>', MORE],
    ['amountMicro % 2n === 0n', MORE],
    ['micro > 0n && isCodeWord', 'nothing is no code word'],
    [': []),', MORE],
    ['high > 0n && low <= MAX_PAYABLE_MICRO', MORE],
    ['(amountMicro + 1n) * factor - 1n', MORE],
    ['low < 1n ? 1n', FAST],
  ],
  'src/core/domain/mismatch/typing-errors.ts': [
    ['if (digit === typed)', ITSELF],
    [
      'at < text.length - 1; at++',
      'behind the last digit comes what arrived itself, or another last digit, which went before',
    ],
    ['if (at === point) continue', ITSELF],
    ['if (left === right)', ITSELF],
    ['at === 0 && point === 1', 'a 0 in its place is a wrong digit, which went before'],
    ['const isDoubled', 'the first of two equal digits went before'],
    ['if (at < point)', 'the point itself was passed over'],
    ['at > point', 'the point itself was passed over'],
  ],
  'src/core/domain/mismatch/payment-patterns.ts': [
    ['const smaller', FAST],
    ['byPayable.get(restMicro) ?? []', TYPE],
    ['last !== undefined', TYPE],
  ],
  'src/core/domain/money.ts': [
    ["text.split('.')", TYPE],
    ['value < 0n', 'nothing is its own negative'],
  ],
  'src/core/domain/api-key.ts': [
    ['const KEY =', 'the checksum is over all that stands before it'],
    ['= match;', TYPE],
    ['keyUuid === null', TYPE],
  ],
  'src/core/domain/capacity.ts': [
    ['daysLeft7 === null || daysLeft30 === null', 'what was used in 7 days was used in 30'],
    ['daysLeft !== null', 'without days left nothing was used, which is asked as well'],
    ['firstUseAt === null', 'nothing, and a first use at that very moment, lead to the same time'],
  ],
  'src/core/domain/receipt/receipt.ts': [
    ['version: (value)', 'it was compared before'],
    ['chain: (value)', LATER],
    ['if (!isObject(value)) return', 'both that are asked for are objects by then'],
    ["typeof value !== 'string') return false", LATER],
    ["read.signature.split('.')", TYPE],
    ['publicKey !== null', TYPE],
    ["typeof x !== 'string'", LATER],
    ['fatal: true', 'the header is compared with the one that its key has'],
    ['json.matchAll', 'only names stand before a colon'],
    ["typeof value !== 'object' || value === null", 'a null would have been refused'],
    ['MAX_KEY_SET_BYTES', 'it bounds a download, and is tested there'],
    ['!Array.isArray(keys)', LATER],
    ["X.test(key.x ?? '')", TYPE],
    ['left < right', 'no two members have one name'],
  ],
  'src/core/domain/lookup/pasted.ts': [
    ['const plain = text', FAST],
    ['const [, integer', TYPE],
  ],
  'src/core/domain/solidity.ts': [
    ['blocks.length - 1', 'there is no block behind the last, and what is none is passed over'],
    ['block === undefined', TYPE],
  ],
  'packages/tron/src/account-xpub.ts': [
    ['.exec(text) ?? []', 'a list of one member has no second, as a list of none'],
    ['publicKey === null', TYPE],
  ],
  'packages/tron/src/address.ts': [
    ['bytes.length !== 25', LATER],
    ['payload[0] !== PREFIX', 'no other prefix with a right checksum makes 34 characters that begin with T'],
  ],
  'packages/tron/src/hex.ts': [['hex.length % 2 !== 0', LATER]],
  'packages/tron/src/merkle.ts': [
    ["let root = ''", 'the first pair replaces it'],
    ['index + 1 < count', 'the hash of one node is overwritten by the node itself'],
  ],
  'packages/tron/src/protobuf.ts': [
    ['tag.value > 0xffff_ffffn', 'the largest tag has a wire type that is refused'],
    ['byte === undefined', LATER],
  ],
  'packages/tron/src/read-contract.ts': [
    ['?? []', LATER],
    ['raw === null', LATER],
  ],
  'packages/tron/src/scan-message.ts': [
    ['from < 0', 'no value stands at 0, for its tag is before it'],
    ['byte === undefined', LATER],
  ],
  'packages/tron/src/signature.ts': [
    ['recovery > 1', '2 and 3 stand for an r that nobody can find, and are refused later'],
  ],
  'packages/tron/src/transaction-bytes.ts': [
    ['rawEnd === null', LATER],
    ["typeof ret === 'string'", LATER],
    ["typeof contractRet === 'string'", LATER],
    ["typeof value !== 'number'", LATER],
    ['value >= 0 && value < 0x80', FAST],
  ],
  'src/faces/web/json-body.ts': [
    ['reason.slice(0, 200)', 'the messages of this engine are shorter, and those of another may not be'],
    ['let isKeyNext = false', 'the first brace sets it'],
    ['i < text.length', 'there is no character behind the last'],
    ['depth === 1', 'the depth is asked twice: when a key may come, and when it does'],
  ],
  'src/core/webhooks/sign.ts': [
    ['bytes.length >= SECRET_BOUNDS.min', 'the pattern of a secret has the same bounds, in characters'],
    ['const SECRET =', 'the text is compared with the one of its bytes afterwards'],
  ],
  'src/core/webhooks/target.ts': [
    ['Math.ceil(connectTimeoutMs', 'no address of this machine swallows packets'],
    ['(ca === undefined', TYPE],
    ['callback(refusal(check), [])', 'with an error nobody looks at the addresses'],
    ['callback(error, [])', 'with an error nobody looks at the addresses'],
    ['url.hostname.replace', 'a host has brackets at both ends or none'],
    ["text.split('/')", TYPE],
    ["hex.split('::')", TYPE],
    ['const V4_MAPPED', 'this block names no address: what it holds does'],
    ['const GLOBAL_UNICAST', 'this block names no address: it is where the public ones are'],
  ],
};

/** Returns why no test detects this mutant; `null` if no reason is known. */
export function reasonOf({ fileName, location }: MutantResult): string | null {
  const line = readFileSync(fileName, 'utf8').split('\n')[location.start.line - 1] ?? '';
  return REASONS[fileName]?.find(([part]) => line.includes(part))?.[1] ?? null;
}
