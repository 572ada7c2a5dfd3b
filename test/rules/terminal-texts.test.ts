import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { addCommands } from '../../src/cli/main.ts';
import { say } from '../../src/core/domain/message.ts';
import { ON_THE_MACHINE, renderKept, renderText } from '../../src/faces/console/page/words.ts';
import { optionOf } from '../../src/faces/operator/command-words.ts';
import { recordTerminal } from '../support/terminal.ts';

const FOLDER = new URL('../../src/faces/operator/', import.meta.url).pathname;
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .map((path) => ({ path, source: parse(readFileSync(join(FOLDER, path), 'utf8')) }));

const program = new Command().option('--json');
await addCommands(program, recordTerminal(), () => true);

/** The options of each command by name: `chain rescan` has `--from`, `--to` and so on. */
const commands = new Map(
  program.commands.flatMap((group) =>
    [group, ...group.commands].map((command) => {
      const name = command === group ? group.name() : `${group.name()} ${command.name()}`;
      return [name, [...program.options, ...command.options].map(({ long }) => long)] as const;
    }),
  ),
);
const options = new Set([...commands.values()].flat());

const OPTION = /(?:^|[^\w-])--[a-z]/;
/** Also matches a command whose name is a placeholder of the template. */
const COMMAND = new RegExp(
  `\\bquittance\\s+(?:$|(?:${program.commands.map((command) => command.name()).join('|')})\\b)`,
);

function parse(text: string): ts.SourceFile {
  return ts.createSourceFile('planted.ts', text, ts.ScriptTarget.Latest, true);
}

function find<Found>(source: ts.Node, look: (node: ts.Node) => Found | undefined): Found[] {
  const found = look(source);
  const below: Found[] = [];
  ts.forEachChild(source, (child) => {
    below.push(...find(child, look));
  });
  return found === undefined ? below : [found, ...below];
}

/** Returns parts of strings that only a terminal should show. The purpose of a derived key isn't shown to anyone. */
function terminalTexts(source: ts.SourceFile): string[] {
  return find(source, (node) => {
    if (!ts.isStringLiteralLike(node) && !ts.isTemplateHead(node) && !ts.isTemplateMiddleOrTemplateTail(node)) return;
    const isPurpose = ts.isPropertyAssignment(node.parent) && node.parent.name.getText() === 'purpose';
    return !isPurpose && (OPTION.test(node.text) || COMMAND.test(node.text)) ? node.text : undefined;
  });
}

/** Returns the value of a literal object's member, if it's in the source. */
function memberOf(node: ts.ObjectLiteralExpression, name: string): ts.Expression | undefined {
  const member = node.properties.find((each) => each.name?.getText() === name);
  return member !== undefined && ts.isPropertyAssignment(member) ? member.initializer : undefined;
}

/** Returns fields and next steps in messages that the command line doesn't have. */
function unknownNames(source: ts.SourceFile): string[] {
  return find(source, (node) => {
    if (!ts.isObjectLiteralExpression(node)) return;
    const [field, command, input] = ['field', 'command', 'input'].map((name) => memberOf(node, name));
    if (field !== undefined && ts.isStringLiteral(field) && !options.has(optionOf(field.text))) return field.text;
    if (command === undefined || !ts.isStringLiteral(command)) return;
    const given = input !== undefined && ts.isObjectLiteralExpression(input) ? input.properties : [];
    const names = given.flatMap(({ name }) => (name === undefined ? [] : [optionOf(name.getText())]));
    const known = commands.get(command.text);
    return names.every((name) => known?.includes(name)) && known !== undefined ? undefined : command.text;
  });
}

test('no use case holds a text of the terminal: a message names fields and next steps as data', () => {
  expect(files.length).toBeGreaterThan(70);
  const found = files.flatMap(({ path, source }) => terminalTexts(source).map((text) => `${path}: ${text}`));
  expect(found).toEqual([]);
});

test.each([
  "throw new AppError('USAGE', 'give --xpub');",
  "const args = ['--from', '1'];",
  `const message = \`--from \${from} is above\`;`,
  `const message = \`\${from} is not before --to \${to}\`;`,
  'const message = say`take it with "--fresh" (docs/guides/backup.md)`;',
  'const next = \'make one with "quittance project create"\';',
  `const next = \`quittance \${command}\`;`,
  "const next = 'wait, then run quittance explain';",
])('a planted text of the terminal is found: %s', (planted) => {
  expect(terminalTexts(parse(planted))).toHaveLength(1);
});

test.each([
  "const key = deriveKey(root, { purpose: 'quittance backup mac 1' });",
  "const options = { applicationName: 'quittance command' };",
  '// quittance explain --project\nconst dash = "a -- b";',
  `const hint = say\`see \${{ command: 'chain status' }} with \${{ field: 'from' }}\`;`,
])('what is no text of the terminal is not: %s', (allowed) => {
  expect(terminalTexts(parse(allowed))).toEqual([]);
});

test('every next step and field that a message names is a command or an option', () => {
  expect(files.flatMap(({ path, source }) => unknownNames(source).map((name) => `${path}: ${name}`))).toEqual([]);
});

test.each([
  [`say\`\${{ command: 'project lists' }}\``, 'project lists'],
  [`say\`\${{ command: 'address add', input: { isStale: true } }}\``, 'address add'],
  [`say\`\${{ field: 'colour' }}\``, 'colour'],
])('a planted name of nothing is found: %s', (planted, name) => {
  expect(unknownNames(parse(planted))).toEqual([name]);
});

const SOURCES = new URL('../../src/', import.meta.url).pathname;
const sources = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .map((path) => ({ path, source: parse(readFileSync(join(SOURCES, path), 'utf8')) }));

/** Console pages that show a command, and why. */
const FOR_WHO_INSTALLS = {
  'faces/console/page/routes.ts': 'the first account, and one that lost all it signs in with, are made on the machine',
};

test('no page of the console has a command in its own texts but those for the person who installs it', () => {
  const pages = sources.filter(({ path }) => path.startsWith('faces/console/'));
  expect(pages.length).toBeGreaterThan(20);
  const found = pages
    .filter(({ source }) => terminalTexts(source).some((text) => COMMAND.test(text) || text.includes('quittance --')))
    .map(({ path }) => path);
  expect(found).toEqual(Object.keys(FOR_WHO_INSTALLS));
});

/**
 * Texts that only a terminal shows: configuration errors occur before there is a console, and documents and problems of the API are for
 * shops.
 */
const NO_PAGE = /^(?:cli|config|console|developer|devnet|runtime|domain\/manifest|web)\/|^main\.ts$/;

/** Returns the commands in texts that a console page may show: as data, or in a sentence that is stored for logs and mails too. */
function commandsNamed(): string[] {
  const names = [...commands.keys()].sort((a, b) => b.length - a.length);
  const inText = new RegExp(`\\bquittance (${names.join('|')})\\b`, 'g');
  return sources
    .filter(({ path }) => !NO_PAGE.test(path))
    .flatMap(({ source }) => [
      ...find(source, (node) => {
        // An object with `action` is the declaration of a command itself.
        if (!ts.isObjectLiteralExpression(node) || memberOf(node, 'action') !== undefined) return;
        const named = memberOf(node, 'command');
        return named !== undefined && ts.isStringLiteral(named) && commands.has(named.text) ? named.text : undefined;
      }),
      ...terminalTexts(source).flatMap((text) => [...text.matchAll(inText)].map(([, name = '']) => name)),
    ]);
}

test('every step that a text names is a link in the console, or in the list of those that are done on the machine', () => {
  const named = new Set(commandsNamed());
  expect(named.size).toBeGreaterThan(40);
  const shown = (command: string) => renderText(say`${{ command, args: ['inv_00000000000000000000000000'] }}`).html;
  const withoutPage = [...named].filter((command) => !shown(command).includes('<a href='));
  expect(withoutPage.filter((command) => !ON_THE_MACHINE.has(command))).toEqual([]);
});

test.each([
  [
    'set it right: quittance webhook test whe_1a. Then wait',
    'set it right: <a href="/webhooks/whe_1a">Send a test</a>. Then wait',
  ],
  ['see "quittance chain status --network nile" & wait', 'see <a href="/chain">Chain</a> &amp; wait'],
  ['run: quittance chain resume --network nile', 'run: <a href="/chain">Chain</a>'],
  ['add: quittance address add --project prj_1a T…', 'add: <a href="/addresses/add?project=prj_1a">Add addresses</a>'],
  [
    'then quittance chain pass --network nile --block 7 and wait',
    'then <code>quittance chain pass --network nile --block 7</code> <small>(on the machine that runs Quittance)</small> and wait',
  ],
  ['quittance is <b>', 'quittance is &lt;b&gt;'],
])('a kept text shows its commands as the pages that do them: %s', (text, shown) => {
  expect(renderKept(text, 600).html).toBe(`<bdi>${shown}</bdi>`);
});
