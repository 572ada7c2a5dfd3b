import { blankSourceFile } from 'ts-blank-space';
import ts from 'typescript';

/**
 * Makes JavaScript of TypeScript by putting spaces where types stood, so that a stack trace names the line and column of the source.
 * tsconfig.json allows only syntax with which this can be done. `resolve` says by which path a package is imported.
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

/** `from './house.ts'` becomes `from './house.js'`, which is as long, and a package that `resolve` knows becomes its path. */
function leadToJavaScript(text, resolve) {
  let led = text;
  // From the last to the first, so that places before it stay where they are.
  for (const { fileName, pos } of ts.preProcessFile(text, true, true).importedFiles.sort((a, b) => b.pos - a.pos)) {
    const name = resolve(fileName).replace(/^(\.\.?\/.*)\.ts$/, '$1.js');
    if (name === fileName) continue;
    const start = text.indexOf(fileName, pos);
    led = led.slice(0, start) + name + led.slice(start + fileName.length);
  }
  return led;
}
