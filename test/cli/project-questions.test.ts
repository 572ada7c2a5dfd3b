import { PassThrough, Writable } from 'node:stream';
import { afterAll, expect, test } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { recordSurroundings } from '../support/terminal.ts';

const database = await createTestDatabase();
afterAll(() => database.drop());

/** Creates a project like a person at a terminal who answers each question. A `null` answer ends the input. */
async function createBy(answers: (string | null)[], ...args: string[]) {
  return createAnswering(answers, '--support', 'help@shop.example', ...args);
}

async function createAnswering(answers: (string | null)[], ...args: string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const asked: string[] = [];
  let said = '';
  const stderr = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      said += chunk;
      for (const [question] of chunk.matchAll(/^How can payers.*|^How many.*/gm)) {
        asked.push(question);
        const answer = answers.shift() ?? null;
        if (answer === null) stdin.end();
        else stdin.write(`${answer}\n`);
      }
      done();
    },
  });
  const env = { DATABASE_URL: database.connectionString, DATABASE_OWNER_URL: database.ownerString };
  const surroundings = { ...recordSurroundings({ env }), stdin, stderr };
  const code = await main(['project', 'create', '--name', 'Shop', '--network', 'nile', ...args], surroundings);
  return { code, asked, stdout: surroundings.written.stdout, stderr: said };
}

test('a person at a terminal is asked for orders and amounts, and told how many addresses they need', async () => {
  const { code, asked, stdout } = await createBy(['1000', ' 20 ']);
  expect(code).toBe(0);
  expect(asked).toHaveLength(2);
  expect(stdout).toMatch(/addresses needed +5 for 90 days, 21 for a year; one address is enough for 18 days/);
});

test('an empty second answer means one amount', async () => {
  expect((await createBy(['100', ''])).stdout).toContain(
    '10 for 90 days, 41 for a year; one address is enough for 9 days',
  );
});

test.each([
  ['an empty line', ''],
  ['the end of the input', null],
])('%s answers nothing, and the project is made all the same', async (_what, answer) => {
  const { code, asked, stdout } = await createBy([answer]);
  expect(code).toBe(0);
  expect(asked).toHaveLength(1);
  expect(stdout).toMatch(/^project +prj_/);
  expect(stdout).not.toContain('addresses needed');
});

test('an answer that is no number makes no project', async () => {
  expect(await createBy(['many'])).toMatchObject({ code: 2, stdout: '' });
});

test.each([
  ['an answer is the contact', 'help@shop.example', /support +help@shop\.example/],
  ['an empty line leaves it out', '', /^(?!.*help@)/s],
])('a project without a support contact asks for one: %s', async (_what, answer, shown) => {
  const { code, asked, stdout, stderr } = await createAnswering([answer, '']);
  expect([code, asked[0]]).toEqual([0, expect.stringContaining('How can payers get help?')]);
  expect(stdout).toMatch(shown);
  expect(stderr.includes('there is no support contact')).toBe(answer === '');
});

test('an answer that is no contact makes no project', async () => {
  expect(await createAnswering(['x'.repeat(201), ''])).toMatchObject({ code: 2, stdout: '' });
});

test.each([['--json'], ['--no-support']])('with %s nobody is asked for a contact', async (option) => {
  const { asked } = await createAnswering([''], option);
  expect(asked.filter((question) => question.startsWith('Where'))).toEqual([]);
});

test('nothing is asked where the options say it, with --json, or where an option is wrong', async () => {
  for (const args of [['--orders-per-day', '5'], ['--json'], ['--lifetime', '1s']]) {
    expect((await createBy([], ...args)).asked).toEqual([]);
  }
});

test('a person at a terminal types a secret on one line, and it is not shown', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  let said = '';
  const stderr = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      said += chunk;
      if (chunk.startsWith('Secret')) stdin.write('hooks.slack.example/secret\n');
      done();
    },
  });
  const env = { DATABASE_URL: database.connectionString, QUITTANCE_MASTER_KEY: Buffer.alloc(32, 1).toString('base64') };
  const code = await main(['notify', 'add', 'slack', '--url', '-'], { ...recordSurroundings({ env }), stdin, stderr });
  expect(code).toBe(2);
  expect(said).toContain('--url is not an http:// or https:// URL');
  expect(said).not.toContain('slack.example');
});
