import { blankSourceFile } from 'ts-blank-space';
import ts from 'typescript';

/**
 * Turns TypeScript into JavaScript by replacing types with spaces, so that stack traces have the lines and columns of the source.
 * tsconfig.json allows only syntax that permits this. `resolve` returns the path by which a package is imported.
 */
export function eraseTypes(path, source, resolve = (specifier) => specifier) {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.ESNext, false, ts.ScriptKind.TS);
  const problems = file.parseDiagnostics.map(({ start, messageText }) => problem(file, start, messageText));
  if (problems.length > 0) return { text: '', problems };
  const text = blankSourceFile(file, (node) => {
    problems.push(problem(file, node.getStart(file), 'This syntax is more than types and cannot be erased.'));
  });
  return { text: leadToJavaScript(text, resolve), problems };
}

function problem(file, start, message) {
  const { line, character } = file.getLineAndCharacterOfPosition(start);
  return `${file.fileName}(${line + 1},${character + 1}): ${ts.flattenDiagnosticMessageText(message, '\n')}`;
}

/**
 * Turns `from './house.ts'` into `from './house.js'`, which has the same length, and replaces a package that `resolve` knows with its path.
 */
function leadToJavaScript(text, resolve) {
  let led = text;
  // Goes from the last to the first, so that earlier positions stay valid.
  for (const { fileName, pos } of ts.preProcessFile(text, true, true).importedFiles.sort((a, b) => b.pos - a.pos)) {
    const name = resolve(fileName).replace(/^(\.\.?\/.*)\.ts$/, '$1.js');
    if (name === fileName) continue;
    const start = text.indexOf(fileName, pos);
    led = led.slice(0, start) + name + led.slice(start + fileName.length);
  }
  return led;
}
