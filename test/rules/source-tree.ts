import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';

/**
 * `to` is a path like the file's own. `isLate` marks an `await import()`, which a process may never reach. `isType` marks an import of
 * types, which loads nothing. `names` are the imported names; null means all.
 */
type Import = { to: string; isLate: boolean; isType: boolean; names: readonly string[] | null };

/** `path` is relative, such as `src/core/domain/money.ts`. `lines` counts all lines like `wc -l`. `functions` are the exported ones. */
export type SourceFile = { path: string; lines: number; imports: Import[]; functions: string[] };

/** The sources of a running Quittance: `src/`, and the packages that it's built with. */
export const SOURCE_FOLDERS = ['src', 'packages/tron/src', 'packages/devnet/src'];

/** Reads the TypeScript files of a checkout, except unit tests, by folder and path. */
export function readSourceTree(root: string, folders: readonly string[] = SOURCE_FOLDERS): SourceFile[] {
  const isSource = (path: string) => path.endsWith('.ts') && !path.endsWith('.test.ts');
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(isSource)
      .sort()
      .map((path) => readSource(posix.join(folder, path), readFileSync(join(root, folder, path), 'utf8'))),
  );
}

/** Returns the file that an import of `specifier` in `path` loads; null for other packages and parts of Node.js. */
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
    if (found && to) file.imports.push({ to, isLate: found.isLate, isType: isTypeImport(node), names: namesOf(node) });
    if (ts.isFunctionDeclaration(node) && node.name !== undefined && isExported(node))
      file.functions.push(node.name.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return file;
}

const isExported = (node: ts.FunctionDeclaration) =>
  node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;

/** `import type …`, `import { type A } …`, `export type … from`, and the type `import('./x.ts').X`. */
function isTypeImport(node: ts.Node): boolean {
  if (ts.isImportTypeNode(node)) return true;
  if (ts.isExportDeclaration(node)) return node.isTypeOnly;
  if (!ts.isImportDeclaration(node) || node.importClause === undefined) return false;
  const { isTypeOnly, namedBindings } = node.importClause;
  const elements = namedBindings !== undefined && ts.isNamedImports(namedBindings) ? [...namedBindings.elements] : [];
  return isTypeOnly || (elements.length > 0 && elements.every((element) => element.isTypeOnly));
}

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
