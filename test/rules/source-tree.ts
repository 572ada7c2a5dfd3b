import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';

/**
 * `to` is a path like the file's own. `isLate` marks an `await import()`, which a process may never reach. `names` are the imported names;
 * null means all.
 */
type Import = { to: string; isLate: boolean; names: readonly string[] | null };

/** `path` as in `src/core/domain/money.ts`; `lines` are all lines, as `wc -l` counts them; `functions` are those that are exported. */
export type SourceFile = { path: string; lines: number; imports: Import[]; functions: string[] };

/** What a running Quittance consists of: `src/`, and the packages that it is built with. */
export const SOURCE_FOLDERS = ['src', 'packages/tron/src', 'packages/devnet/src'];

/** The TypeScript of a checkout without its unit tests, by folder and path. */
export function readSourceTree(root: string, folders: readonly string[] = SOURCE_FOLDERS): SourceFile[] {
  const isSource = (path: string) => path.endsWith('.ts') && !path.endsWith('.test.ts');
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(isSource)
      .sort()
      .map((path) => readSource(posix.join(folder, path), readFileSync(join(root, folder, path), 'utf8'))),
  );
}

/** The file that an import of `specifier` in `path` loads, or null for a package of others and a part of Node. */
export function importedFile(path: string, specifier: string): string | null {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(path), specifier);
  const [, name, file = 'index'] = /^@quittance\/(tron|devnet)(?:\/(.+))?$/.exec(specifier) ?? [];
  return name === undefined ? null : `packages/${name}/src/${file}.ts`;
}

export function readSource(path: string, text: string): SourceFile {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const file: SourceFile = { path, lines: text.split('\n').length - 1, imports: [], functions: [] };
  const visit = (node: ts.Node): void => {
    const found = importOf(node);
    const to = found && importedFile(path, found.specifier);
    if (found && to) file.imports.push({ to, isLate: found.isLate, names: namesOf(node) });
    if (ts.isFunctionDeclaration(node) && node.name !== undefined && isExported(node))
      file.functions.push(node.name.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return file;
}

const isExported = (node: ts.FunctionDeclaration) =>
  node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;

/** Returns the names in an `import { … }`. */
function namesOf(node: ts.Node): string[] | null {
  const bindings = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : undefined;
  if (bindings === undefined || !ts.isNamedImports(bindings)) return null;
  return bindings.elements.map(({ propertyName, name }) => (propertyName ?? name).text);
}

/** Recognises `import`, `export … from`, `import()` and the type `import('./x.ts').X`. */
function importOf(node: ts.Node): { specifier: string; isLate: boolean } | null {
  const specifierOf = (name: ts.Node | undefined) => (name && ts.isStringLiteral(name) ? name.text : '');
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
    return { specifier: specifierOf(node.moduleSpecifier), isLate: false };
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    return { specifier: specifierOf(node.arguments[0]), isLate: true };
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return { specifier: specifierOf(node.argument.literal), isLate: false };
  }
  return null;
}
