import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';

/** `to` is a path like the file's own. `isLate` tells `await import()`, which a process may never come to. */
type Import = { to: string; isLate: boolean };

/** `path` as in `src/domain/money.ts`; `lines` are all lines, as `wc -l` counts them. */
export type SourceFile = { path: string; lines: number; imports: Import[] };

/** The TypeScript below `folder` of a checkout without its unit tests, by path. */
export function readSourceTree(root: string, folder = 'src'): SourceFile[] {
  const isSource = (path: string) => path.endsWith('.ts') && !path.endsWith('.test.ts');
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(isSource)
    .sort()
    .map((path) => readSource(posix.join(folder, path), readFileSync(join(root, folder, path), 'utf8')));
}

export function readSource(path: string, text: string): SourceFile {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const file: SourceFile = { path, lines: text.split('\n').length - 1, imports: [] };
  const visit = (node: ts.Node): void => {
    const found = importOf(node);
    if (found?.specifier.startsWith('.')) {
      file.imports.push({ to: posix.join(posix.dirname(path), found.specifier), isLate: found.isLate });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return file;
}

/** `import`, `export … from`, `import()` and the type `import('./x.ts').X`. */
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
