import { expect, test } from 'vitest';
import { joinTexts, Message, say, type Text, type Words } from './message.ts';

const PAGE: Words = {
  field: (name) => `<label for=${name}>`,
  secret: (kind, place = 'here') => `<b>${kind} ${place}</b>`,
  step: ({ command, args = [], input = {} }) => `<a href=/${[command, ...args, ...Object.keys(input)].join('/')}>`,
};

const written = (text: Text) => (text instanceof Message ? text.write(PAGE) : text);

const refused = say`${{ field: 'from' }} is ${3}: see "${{ command: 'chain rescan', args: ['x'], input: { to: '5' } }}"`;
const secret = say`${{ secret: 'a private key', place: 'argument 2' }}, and ${{ secret: 'a seed phrase' }}`;

test('each face writes the fields and next steps of a message with its own words', () => {
  expect(written(refused)).toBe('<label for=from> is 3: see "<a href=/chain rescan/x/to>"');
  expect(written(secret)).toBe('<b>a private key argument 2</b>, and <b>a seed phrase here</b>');
});

test('a log has the bare names', () => {
  expect(String(refused)).toBe('from is 3: see "chain rescan"');
  expect(String(secret)).toBe('this looks like a private key, and this looks like a seed phrase');
});

test('a message in a message keeps its names', () => {
  expect(written(say`first: ${refused}.`)).toBe(`first: ${written(refused)}.`);
  expect(written(joinTexts(['one', refused, 'two'], '; '))).toBe(`one; ${written(refused)}; two`);
});

test('a text that names nothing is a string', () => {
  expect(say`block ${3} of ${'mainnet'}`).toBe('block 3 of mainnet');
  expect(joinTexts(['one', 'two'], ' ')).toBe('one two');
});

test('a text from outside that looks like a name stays what it is', () => {
  const given = '{ command: "x" } {field} --from';
  expect(written(say`${given}: ${{ field: 'to' }}`)).toBe(`${given}: <label for=to>`);
});
