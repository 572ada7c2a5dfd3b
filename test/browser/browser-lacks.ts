import compatibility from '@mdn/browser-compat-data' with { type: 'json' };
import type { CompatStatement, Identifier } from '@mdn/browser-compat-data';
import ts from 'typescript';

/** The oldest browsers that the payment page supports; docs/guides/checkout.md lists them. */
export const OLDEST = { chrome: 80, safari: 13, safari_ios: 13 } as const;

/** Names used by us and by wallets that also exist in some newer browser interface. */
const OURS = new Set(['until', 'type', 'provider']);

/**
 * Returns features that a script uses and the oldest browsers lack, by name: syntax, members of the language and the browser, and options
 * of `Intl`. A member of an unknown object counts as lacking if every interface with a member of that name is too new.
 */
export function findLacking(code: string): string[] {
  const source = ts.createSourceFile('script.js', code, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const lacking = new Set<string>();
  const visit = (node: ts.Node) => {
    const found = lackingOf(node);
    if (found !== null) lacking.add(found);
    ts.forEachChild(node, visit);
  };
  visit(source);
  // Both support all of ES2019 and only parts of ES2020: `?.` came to Safari with 13.1. Both already support numeric separators.
  const written = (target: ts.ScriptTarget) => ts.transpile(code.replace(/(?<=\d)_(?=\d)/g, ''), { target });
  if (written(ts.ScriptTarget.ES2019) !== written(ts.ScriptTarget.ESNext)) lacking.add('syntax');
  return [...lacking].sort();
}

/** Returns the names that a script uses without declaring them: globals of the language and the browser. */
export function findGlobals(code: string): string[] {
  const file = 'script.js';
  const source = ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const host = { ...ts.createCompilerHost({}), getSourceFile: (name: string) => (name === file ? source : undefined) };
  const checker = ts.createProgram([file], { allowJs: true, noLib: true, noResolve: true }, host).getTypeChecker();
  const globals = new Set<string>();
  const visit = (node: ts.Node) => {
    const { parent } = node;
    const isName =
      ts.isIdentifier(node) &&
      !(ts.isPropertyAccessExpression(parent) && parent.name === node) &&
      !(ts.isBindingElement(parent) && parent.propertyName === node) &&
      !ts.isPropertyAssignment(parent);
    if (isName && (checker.getSymbolAtLocation(node)?.declarations ?? []).length === 0) globals.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...globals].sort();
}

function lackingOf(node: ts.Node): string | null {
  if (ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node)) {
    const name = node.name.getText();
    if (OURS.has(name)) return null;
    const options = OPTIONS.get(name) ?? [];
    return options.length > 0 && !options.some(isThere) ? `{ ${name} }` : null;
  }
  if (!ts.isPropertyAccessExpression(node)) return null;
  const [object, name] = [node.expression.getText(), node.name.text];
  if (OURS.has(name)) return null;
  const owner = compatibility.api[object] ?? compatibility.javascript['builtins']?.[object];
  const own = owner?.[`${name}_static`] ?? owner?.[name];
  if (own !== undefined) return isThere(own) ? null : `${object}.${name}`;
  const entries = MEMBERS.get(name) ?? [];
  return entries.length > 0 && !entries.some(isThere) ? `.${name}` : null;
}

const isIdentifier = (entry: unknown): entry is Identifier => typeof entry === 'object' && entry !== null;

/** From a name to every feature with that name. */
const MEMBERS = new Map<string, Identifier[]>();
const OPTIONS = new Map<string, Identifier[]>();
for (const owners of [compatibility.api, compatibility.javascript['builtins'] ?? {}]) {
  for (const owner of Object.values(owners)) {
    if (isIdentifier(owner)) note(owner);
  }
}

function note(owner: Identifier): void {
  for (const [key, entry] of Object.entries(owner)) {
    if (key === '__compat' || !isIdentifier(entry)) continue;
    const option = /^options_(\w+)_parameter$/.exec(key)?.[1];
    const [name, index] = option === undefined ? [key, MEMBERS] : [option, OPTIONS];
    index.set(name, [...(index.get(name) ?? []), entry]);
    if (/^(options_parameter|[A-Z]\w*)$/.test(key)) note(entry);
  }
}

function isThere(entry: Identifier): boolean {
  const { support } = entry.__compat ?? {};
  if (support === undefined) return true;
  return Object.entries(OLDEST).every(([browser, oldest]) => isSince(support, browser as keyof typeof OLDEST, oldest));
}

function isSince(support: CompatStatement['support'], browser: keyof typeof OLDEST, oldest: number): boolean {
  return [support[browser] ?? []].flat().some(({ version_added: since, version_removed, flags, prefix }) => {
    if (typeof since !== 'string' || version_removed || flags || prefix) return false;
    return Number.parseFloat(since.replace('≤', '')) <= oldest;
  });
}
