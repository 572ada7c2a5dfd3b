import { blankSourceFile } from 'ts-blank-space';
import ts from 'typescript';

/**
 * Makes JavaScript of TypeScript by putting spaces where types stood, so that a stack trace names the line and column of the source.
 * tsconfig.json allows only syntax with which this can be done.
 */
export function eraseTypes(path, source) {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.ESNext, false, ts.ScriptKind.TS);
  const problems = file.parseDiagnostics.map(({ start, messageText }) => problem(file, start, messageText));
  if (problems.length > 0) return { text: '', problems };
  const text = blankSourceFile(file, (node) => {
    problems.push(problem(file, node.getStart(file), 'This syntax is more than types and cannot be erased.'));
  });
  return { text: leadToJavaScript(text), problems };
}

function problem(file, start, message) {
  const { line, character } = file.getLineAndCharacterOfPosition(start);
  return `${file.fileName}(${line + 1},${character + 1}): ${ts.flattenDiagnosticMessageText(message, '\n')}`;
}

/** `from './house.ts'` becomes `from './house.js'`, which is as long. */
function leadToJavaScript(text) {
  let led = text;
  for (const { fileName, pos } of ts.preProcessFile(text, true, true).importedFiles) {
    if (!/^\.\.?\/.*\.ts$/.test(fileName)) continue;
    const end = text.indexOf(fileName, pos) + fileName.length;
    led = `${led.slice(0, end - '.ts'.length)}.js${led.slice(end)}`;
  }
  return led;
}
