import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import type { LiveMessage } from '../../src/checkout/page/live-message.ts';

/** A stream of server-sent events, as far as it has come. */
export type EventStream = {
  status: number;
  headers: IncomingHttpHeaders;
  text(): string;
  /** Those of type `page`, oldest first. */
  messages(): (LiveMessage & { id: string })[];
  hasEnded(): boolean;
  close(): void;
  /** Takes no bytes from now on. */
  pause(): void;
};

/** Opens a stream as a browser does, and gathers what comes. */
export async function openEventStream(
  url: string,
  options: { headers?: Record<string, string>; method?: string } = {},
): Promise<EventStream> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const { method = 'GET', headers = {} } = options;
    request(url, { method, headers, agent: false }, resolve).on('error', reject).end();
  });
  let [text, hasEnded] = ['', false];
  response.setEncoding('utf8');
  response.on('data', (part: string) => {
    text += part;
  });
  // An end by force is one, too.
  response.on('error', () => undefined);
  response.on('close', () => {
    hasEnded = true;
  });
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: () => text,
    messages: () =>
      text.split('\n\n').flatMap((block) => {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? '';
        return field('event') === 'page' ? [{ ...(JSON.parse(field('data')) as LiveMessage), id: field('id') }] : [];
      }),
    hasEnded: () => hasEnded,
    close: () => response.destroy(),
    pause: () => response.pause(),
  };
}
