import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { ACTIONS, type Rule } from '../../src/faces/operator/actions.ts';

const RULES: Readonly<Record<string, Rule>> = ACTIONS;
const ROOT = join(import.meta.dirname, '../../src/faces/operator');

/** Parts of use cases that other files and tests call. */
const INNER = [
  ...[
    'recordAction',
    'recordActions',
    'recordedActor',
    'recordRescanned',
    'rotateEndpointSecret',
    'runJob',
    'takeCode',
  ],
  ...[
    'authorize',
    'isAllowed',
    'maySee',
    'perform',
    'findRefusal',
    'lockDecision',
    'recordDecision',
    'proposeChange',
    'selectChange',
    'selectEndpoint',
    'selectEvent',
    'selectProject',
    'refuseBeyond',
    'refuseUnknownProjects',
  ],
];

type UseCase = { name: string; takesActor: boolean };

/** Returns the operations, and the exported functions with an actor, of a file's text. `takesActor` means that they use it. */
function findUseCases(text: string): UseCase[] {
  const source = ts.createSourceFile('use-case.ts', text, ts.ScriptTarget.Latest, true);
  return source.statements.flatMap((node): UseCase[] => {
    if (ts.isVariableStatement(node)) return node.declarationList.declarations.flatMap(readOperation);
    if (!ts.isFunctionDeclaration(node) || node.name === undefined) return [];
    const isExported = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;
    const actor = node.parameters.find(({ type }) => type?.getText() === 'Actor');
    if (!isExported || actor === undefined) return [];
    return [{ name: node.name.text, takesActor: isUsed(actor) }];
  });
}

/** `operation({ action: 'listKeys', run: async (deps, actor, wanted) => … })` */
function readOperation({ initializer }: ts.VariableDeclaration): UseCase[] {
  if (initializer === undefined || !ts.isCallExpression(initializer)) return [];
  const [declared] = initializer.arguments;
  if (!['operation', 'localOperation'].includes(initializer.expression.getText()) || declared === undefined) return [];
  if (!ts.isObjectLiteralExpression(declared)) return [];
  const memberOf = (name: string) => {
    const member = declared.properties.find((each) => each.name?.getText() === name);
    return member !== undefined && ts.isPropertyAssignment(member) ? member.initializer : undefined;
  };
  const [action, run] = [memberOf('action'), memberOf('run')];
  if (action === undefined || !ts.isStringLiteral(action) || run === undefined || !ts.isArrowFunction(run)) return [];
  const [, actor] = run.parameters;
  return [{ name: action.text, takesActor: actor !== undefined && isUsed(actor) }];
}

const isUsed = (actor: ts.ParameterDeclaration) => !actor.name.getText().startsWith('_');

function allUseCases(): UseCase[] {
  const found = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .flatMap((path) => findUseCases(readFileSync(join(ROOT, path), 'utf8')))
    .filter(({ name }) => !INNER.includes(name));
  // An operation may run a function that is also found.
  const named = new Map<string, boolean>();
  for (const { name, takesActor } of found) named.set(name, takesActor || named.get(name) === true);
  return [...named].map(([name, takesActor]) => ({ name, takesActor }));
}

test('every use case stands in the table of who may do what, and nothing else does', () => {
  expect(
    allUseCases()
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(Object.keys(ACTIONS).toSorted());
});

test('a use case that changes something has an actor to record, and one that only reads records nobody', () => {
  for (const { name, takesActor } of allUseCases()) {
    if (RULES[name]?.records !== undefined) expect(takesActor, name).toBe(true);
  }
});

test('a use case that forgets its actor is found', () => {
  expect(findUseCases('export async function eatCake({ db }: Deps, _actor: Actor, cake: Cake) {}')).toMatchObject([
    { name: 'eatCake', takesActor: false },
  ]);
  for (const run of ['async ({ db }) => ({})', 'async ({ db }, _actor, cake) => ({})']) {
    expect(findUseCases(`export const eat = operation({ action: 'eatCake', run: ${run} });`)).toEqual([
      { name: 'eatCake', takesActor: false },
    ]);
  }
});

/**
 * No command of this test records these. They need a browser, or a refund on the chain (test/flows/refunds.test.ts), or people without a
 * shop, or were done by a key or the service. test/people, test/console and test/addresses check that they are recorded.
 */
const OF_PAGES = [
  ...[
    'address.failed',
    'address.proposed',
    'backup.requested',
    'invoice.created',
    'invoice.withdrawn',
    'passkey.added',
    'passkey.removed',
    'session.stepped-up',
    'transfer.refunded',
  ],
];

test('everything that is recorded stands in the audit log of a run of the commands', () => {
  const folder = join(import.meta.dirname, '../cli/golden/commands');
  const text = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
  const seen = new Set([...text.join('').matchAll(/^\d+ .* cli {2,}([a-z-]+\.[a-z]+) /gm)].map(([, action]) => action));
  const recorded = new Set(Object.values(RULES).flatMap(({ records = [] }) => records));
  expect([...recorded].filter((action) => !seen.has(action)).toSorted()).toEqual(OF_PAGES);
});
