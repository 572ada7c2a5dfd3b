/**
 * A style sheet of ours without comments and spare whitespace. Its strings must hold none of `{};,>:` followed or led by spaces, and no
 * comment.
 */
export function shrinkStyle(text: string): string {
  return text
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([{};,>]) ?/g, '$1')
    .replaceAll(/: /g, ':')
    .replaceAll(';}', '}')
    .trim();
}

/**
 * A script of ours without the comments that stand on lines of their own, and without indentation and empty lines. The other line breaks
 * stay, for they end statements. No string of it goes over two lines.
 */
export function shrinkScript(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('//'))
    .join('\n');
}
