import type { AccountHex } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { readCandidates, refusedAddresses } from './read-candidates.ts';

const CONTRACT = 'a614f803b6fd780986a42c78ec9c7f77e6ded13c' as AccountHex;
const [A, B] = ['TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK'];
const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow'.split(' ');
const SPANISH = 'ábaco abdomen abeja abierto abogado abono aborto abrazo abrir ébano águila acabar';
const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd';
/** Includes the messages as a log shows them. */
const read = (...texts: string[]) => {
  const entries = texts.map((text, index) => ({ text, place: `argument ${index + 1}` }));
  const { good, problems } = readCandidates(entries, [CONTRACT]);
  return { good, problems: problems.map(({ subject, message }) => ({ subject, message: String(message) })) };
};

test('addresses come out in their order', () => {
  const { good, problems } = read(B, A);
  expect(good.map(({ address }) => address)).toEqual([B, A]);
  expect(problems).toEqual([]);
});

test.each([
  ['0xdAC17F958D2ee523a2206206994597C13D831ec7', 'Ethereum-style'],
  ['41a614f803b6fd780986a42c78ec9c7f77e6ded13c', 'hexadecimal form'],
  ['bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', 'an address for Bitcoin'],
  ['1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa', 'an address for Bitcoin'],
  ['3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy', 'an address for Bitcoin'],
  ['ltc1qg42tkwuuxefutzxezdkdel39gfstuap288mfea', 'an address for Litecoin'],
  ['UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF', 'an address for TON'],
  ['7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtVa', 'an address for Solana'],
  ['27QAUYjg5FXfxcvyHcWF3Aokd5eu9iYgs1c', 'old TRON test network'],
  [XPUB, 'to derive addresses from it, run "address derive"'],
  ['ТUEZSdKsoDHQMeZwihtdoBiN46zxhGWYd', 'U+0422'],
  [`${A}\u200b`, 'U+200B'],
  [A.slice(0, -1), 'this text has 33'],
  [`${A.slice(0, -1)}J`, 'checksum'],
  ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'the USDT contract itself'],
  ['T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb', 'the burn address'],
  ['', 'empty'],
  ['hello', 'a TRON address has 34 characters, but this text has 5'],
  ['0x12', 'Ethereum-style'],
  ['LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1', 'starts with T, but this text starts with L'],
])('%j is refused with a reason of its own', (text, reason) => {
  const { good, problems } = read(B, text);
  expect(good).toHaveLength(1);
  expect(problems).toEqual([{ subject: 'argument 2', message: expect.stringContaining(reason) }]);
});

test('an address that is given twice is refused with the place of the first', () => {
  expect(read(A, B, A).problems).toMatchObject([
    { subject: 'argument 3', message: expect.stringContaining('argument 1') },
  ]);
});

test.each([
  ['4f'.repeat(32), 'a private key'],
  [`xprv9${'s'.repeat(106)}`, 'an extended private key'],
  [`zprv9${'s'.repeat(106)}`, 'an extended private key'],
  ['KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617', 'a private key'],
  ['legal winner thank year wave sausage worth useful legal winner thank yellow', 'a seed phrase'],
])('a secret is named by its kind and never repeated', (text, kind) => {
  const { problems } = read(A, text);
  expect(problems).toHaveLength(1);
  expect(problems[0]?.message).toContain(`argument 2: this looks like ${kind}`);
  expect(problems[0]?.message).not.toContain(text.slice(4, 12));
});

test.each([
  ['a private key with a letter too many', [`${'4f'.repeat(32)}4`]],
  ['a private key in two halves', ['3a4f'.repeat(8), '4f3a'.repeat(8)]],
  ['a private key in base64', [Buffer.alloc(32, 0x4f).toString('base64')]],
  ['a private key in base58', ['7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtVa']],
  ['a mini key', ['S6c56bnXQiBjk9mqSYE7ykVQ7NzrRy']],
  ['plain words', ['sausage', 'legal winner']],
  ['eleven words', WORDS.slice(1)],
  ['twelve words that are separate', WORDS],
  ['twelve words beside addresses', [A, ...WORDS.slice(0, 6), B, ...WORDS.slice(6)]],
  ['a title and three words a line', ['my wallet', ...(WORDS.join(' ').match(/\w+ \w+ \w+/g) ?? [])]],
  ['twelve words in Chinese', [...'的一是在不了有和人这中大']],
  ['twelve words in Japanese', Array<string>(12).fill('がんばる'.normalize('NFKD'))],
  ['twelve words in Spanish', [`${SPANISH}`.normalize('NFD')]],
  ['a phrase in a whole text', [`${A} ${WORDS.join(' ')}`]],
])('no message repeats %s', (_what, texts) => {
  const { problems } = read(...texts);
  expect(problems.length).toBeGreaterThan(0);
  const reported = JSON.stringify(problems).normalize('NFC');
  const words = texts.flatMap((text) => text.normalize('NFC').split(' ')).filter((word) => word !== A && word !== B);
  for (const word of words) expect(reported).not.toContain(word);
});

test.each([
  ['arguments', WORDS, 'arguments: this looks like a seed phrase'],
  ['arguments among addresses', [A, ...WORDS.slice(0, 6), B, ...WORDS.slice(6)], 'this looks like a seed phrase'],
  ['Chinese characters', [...'的一是在不了有和人这中大'], 'arguments: this looks like a seed phrase'],
])('words that are %s are called a seed phrase once', (_what, texts, message) => {
  expect(read(...texts).problems).toEqual([{ subject: 'arguments', message: expect.stringContaining(message) }]);
});

test.each([
  `${A.slice(0, -1)}J`,
  `${A}x`,
  '0xdAC17F958D2ee523a2206206994597C13D831ec7',
  '41a614f803b6fd780986a42c78ec9c7f77e6ded13c',
  'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq',
  '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
  '27QAUYjg5FXfxcvyHcWF3Aokd5eu9iYgs1c',
])('what looks like an address is shown: %s', (text) => {
  expect(read(text).problems).toMatchObject([{ message: expect.stringContaining(`argument 1 ("${text}"):`) }]);
});

test('what is shown of a foreign text can neither control the terminal nor turn its direction', () => {
  const { problems } = read(`T\u009b2J\u202e${A.slice(3)}`);
  expect(problems).toMatchObject([
    { message: expect.stringContaining(`argument 1 ("T\\u009b2J\\u202e${A.slice(3)}"):`) },
  ]);
});

test('a refusal lists 50 problems and says how many there are besides', () => {
  const problems = Array.from({ length: 53 }, (_, index) => ({ subject: `${index}`, message: `${index}` }));
  const listed = refusedAddresses('no address was added', problems).problems;
  expect(listed).toHaveLength(51);
  expect(listed.at(-1)?.message).toBe('… and 3 more');
});
