/** A row of a CSV text. `line` counts from 1, where the row starts: a quoted cell may hold line breaks. */
export type CsvRow = { cells: string[]; line: number };

export type CsvRows = { kind: 'ok'; rows: CsvRow[] } | { kind: 'invalid'; line: number; reason: string };

type Delimiter = ',' | ';' | '\t';

/**
 * Splits a CSV text (RFC 4180) with LF or CRLF; a quote inside of quotes is doubled. Space around a cell is cut off. Empty
 * lines are left out, and lines that start with `#`.
 */
export function readCsvRows(text: string): CsvRows {
  const delimiter = findDelimiter(text);
  const rows: CsvRow[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    const row: CsvRow = { cells: [], line };
    const isComment = text[at] === '#';
    let isLast = isComment;
    if (isComment) at = endOfLine(text, at);
    while (!isLast) {
      const cell = readCell(text, at, delimiter);
      if (cell.kind === 'invalid') return { ...cell, line };
      row.cells.push(cell.text);
      line += cell.lineBreaks;
      at = cell.end;
      isLast = text[at] !== delimiter;
      if (!isLast) at += 1;
    }
    if (row.cells.some((cell) => cell !== '')) rows.push(row);
    at += text.startsWith('\r\n', at) ? 2 : 1;
    line += 1;
  }
  return { kind: 'ok', rows };
}

/** The one that occurs most in the first row that is neither empty nor a comment, outside of quotes. */
function findDelimiter(text: string): Delimiter {
  const start = /^(?:#[^\n]*\n|[ \r]*\n)*/.exec(text)?.[0].length ?? 0;
  const bare = text.slice(start).replace(/"[^"]*"/g, 'x');
  const [first = ''] = bare.split('\n', 1);
  const counts = ([',', ';', '\t'] as const).map((delimiter) => ({ delimiter, count: first.split(delimiter).length }));
  return counts.reduce((most, each) => (each.count > most.count ? each : most)).delimiter;
}

type Cell = { kind: 'ok'; text: string; end: number; lineBreaks: number } | { kind: 'invalid'; reason: string };

/** Reads the cell that starts at `start`; `end` is where its delimiter or its line's end stands. */
function readCell(text: string, start: number, delimiter: Delimiter): Cell {
  const open = skipSpace(text, start);
  if (text[open] !== '"') {
    const end = endOfBare(text, start, delimiter);
    return { kind: 'ok', text: text.slice(start, end).trim(), end, lineBreaks: 0 };
  }
  let close = open + 1;
  for (; ; close += 2) {
    close = text.indexOf('"', close);
    if (close === -1) return { kind: 'invalid', reason: 'a cell opens with a quote that never ends' };
    if (text[close + 1] !== '"') break;
  }
  const quoted = text.slice(open + 1, close);
  const end = skipSpace(text, close + 1);
  if (end < text.length && text[end] !== delimiter && text[end] !== '\n' && !text.startsWith('\r\n', end)) {
    return { kind: 'invalid', reason: 'something stands between a quote that ends a cell and the next column' };
  }
  return { kind: 'ok', text: quoted.replaceAll('""', '"').trim(), end, lineBreaks: quoted.split('\n').length - 1 };
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ') at += 1;
  return at;
}

function endOfBare(text: string, start: number, delimiter: Delimiter): number {
  let at = start;
  while (at < text.length && text[at] !== delimiter && text[at] !== '\n' && !text.startsWith('\r\n', at)) at += 1;
  return at;
}

function endOfLine(text: string, start: number): number {
  const end = text.indexOf('\n', start);
  if (end === -1) return text.length;
  return text[end - 1] === '\r' ? end - 1 : end;
}
