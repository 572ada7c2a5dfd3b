import type { IncomingMessage } from 'node:http';

/**
 * Returns the raw values of a header, one per occurrence; Node.js joins them with a comma. `name` is in lower case. Node's
 * `headersDistinct` returns the same, but it sorts all headers of each request.
 */
export function headerValues({ rawHeaders }: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [key = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    if (key.length === name.length && key.toLowerCase() === name) values.push(value);
  }
  return values;
}
