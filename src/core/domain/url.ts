/**
 * Parses a URL, or returns `null`. `URL.canParse` would be shorter, but it has a bug in Node 20: after some thousand calls, it returns
 * `false` for any text that contains a Latin-1 letter outside ASCII, such as `https://bücher.example`.
 */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}
