import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import ts from 'typescript';
import { beforeAll, describe, expect, test } from 'vitest';
import { NETWORKS } from '../../src/core/domain/network.ts';
import { longTest } from '../support/some-cases.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

/** The first step of the recipe in CONTRIBUTING.md with this heading. `named` appears in the compiler's resulting errors. */
const PLANTS = [
  {
    recipe: 'Add an event type',
    file: 'src/core/domain/event.ts',
    find: "  'ping',\n] as const;",
    plant: "  'ping',\n  'planted.event',\n] as const;",
    named: 'planted.event',
  },
  {
    recipe: 'Add an alarm',
    file: 'src/core/domain/alarm-kinds.ts',
    find: '} as const satisfies Record<string, AlarmRow>;',
    plant:
      "  'planted-alarm': { scope: 'network', rank: 1, isUrgent: true, endsBy: 'cause' },\n} as const satisfies Record<string, AlarmRow>;",
    named: 'means, impact, advice',
  },
  {
    recipe: 'Add a field to an operation',
    file: 'src/faces/operator/subjects/keys.ts',
    find: "      ['NAME', 'name'],\n    ]),",
    plant: "      ['NAME', 'name'],\n      ['PLANTED', 'plantedNote'],\n    ]),",
    named: 'plantedNote',
  },
  {
    recipe: 'Add an operation',
    file: 'src/faces/operator/subjects/keys.ts',
    find: 'export const operations = [',
    plant: "export const operations = [operation({ ...revokeKey, action: 'plantedAction' }), ",
    named: 'plantedAction',
  },
  {
    recipe: 'Add a console page',
    file: 'src/faces/console/register.ts',
    find: '  addTodayRoute(routes, deps);\n',
    plant: "  routes.get('/planted', 'plantedPage', [], async () => ({ goTo: '/' }));\n",
    named: 'plantedPage',
  },
  {
    recipe: 'Add a cause and its scenario',
    file: 'src/core/domain/mismatch.ts',
    find: '} as const satisfies Record<string, CauseRow>;',
    plant: "  PLANTED_CAUSE: { title: 'Planted' },\n} as const satisfies Record<string, CauseRow>;",
    named: 'PLANTED_CAUSE',
  },
  {
    recipe: 'Add a network',
    file: 'src/core/domain/network.ts',
    find: "'devnet'] as const;",
    plant: "'devnet', 'plantednet'] as const;",
    named: 'plantednet',
  },
  {
    recipe: "Add a field on the payer's page",
    file: 'src/core/store/ledger/checkout.ts',
    find: "const columns = {\n  id: 'uuid',",
    plant: "const columns = {\n  plantedField: 'text',\n  id: 'uuid',",
    named: 'plantedField',
  },
] as const;

/** The compiler's errors with everything planted at once, which takes no longer than a single plant. */
let diagnostics: readonly ts.Diagnostic[];

function compilePlanted(): readonly ts.Diagnostic[] {
  const config = ts.getParsedCommandLineOfConfigFile(
    `${ROOT}tsconfig.json`,
    {},
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined },
  );
  if (config === undefined) throw new Error('there is no tsconfig.json');
  const host = ts.createIncrementalCompilerHost(config.options);
  const read = host.readFile.bind(host);
  host.readFile = (path) => {
    const text = read(path);
    const plants = PLANTS.filter(({ file }) => path === ROOT + file);
    return plants.reduce((planted, { find, plant }) => planted?.replace(find, plant), text);
  };
  const sources = config.fileNames.filter(
    (name) => /^(src|test\/support)\//.test(name.slice(ROOT.length)) && !name.endsWith('.test.ts'),
  );
  const builder = ts.createSemanticDiagnosticsBuilderProgram(sources, config.options, host);
  // About half of the files. The compiler's errors in the others don't depend on the plants.
  const affected = sources
    .flatMap((name) => builder.getSourceFile(name) ?? [])
    .filter((file) => builder.getAllDependencies(file).some((path) => PLANTS.some(({ file }) => path === ROOT + file)));
  // Uses the program, because the builder checks all files before it answers.
  const program = builder.getProgram();
  return affected.flatMap((file) => program.getSemanticDiagnostics(file));
}

/** Returns the files in which the compiler mentions a plant. */
function filesNaming(planted: string): string[] {
  const naming = diagnostics.filter(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, '\n').includes(planted),
  );
  return [...new Set(naming.map(({ file }) => relative(ROOT, file?.fileName ?? '')))].sort();
}

test.each(PLANTS)('$recipe: the plant has exactly one place in its file', async ({ file, find }) => {
  expect((await readFile(ROOT + file, 'utf8')).split(find)).toHaveLength(2);
});

describe('with everything planted', () => {
  beforeAll(() => {
    diagnostics = compilePlanted();
  });

  longTest.each(PLANTS)('$recipe: the compiler names the files of the recipe', async ({ recipe, file, named }) => {
    const page = await readFile(`${ROOT}CONTRIBUTING.md`, 'utf8');
    const [, section = ''] = new RegExp(`### ${recipe}\\n([^]*?)(?:\\n##|$)`).exec(page) ?? [];
    const listed = [...section.matchAll(/`((?:src|test\/support)\/[^`]+)`/g)].map(([, path]) => path);
    expect(listed).toContain(file);
    // The planted file itself is only listed if it uses its own declaration.
    expect([...new Set([file, ...filesNaming(named)])].sort()).toEqual(listed.sort());
  });

  longTest('whatever the compiler says of the plants is told to somebody', () => {
    const texts = diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
    expect(texts.filter((text) => !PLANTS.some(({ named }) => text.includes(named)))).toEqual([]);
  });
});

test('the database takes the networks of the list and no other', async () => {
  const schema = JSON.parse(await readFile(`${ROOT}migrations/schema.json`, 'utf8')) as Record<string, string>;
  const checks = Object.entries(schema).filter(
    ([name, text]) => /network_check$/.test(name) && text.startsWith('CHECK'),
  );
  expect(checks.length).toBeGreaterThan(0);
  for (const [name, text] of checks) {
    const allowed = [...text.matchAll(/'([a-z]+)'::text/g)].map(([, network]) => network);
    expect.soft(allowed.sort(), name).toEqual([...NETWORKS].sort());
  }
});
