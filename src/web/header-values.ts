import type { IncomingMessage } from 'node:http';

/**
 * The values of a header as they came, one for each time it was sent; Node's own view joins them with a comma. `name` is in
 * lower case. Node's `headersDistinct` says the same, but sorts all headers of each request for it.
 */
export function headerValues({ rawHeaders }: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [key = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    if (key.length === name.length && key.toLowerCase() === name) values.push(value);
  }
  return values;
}
