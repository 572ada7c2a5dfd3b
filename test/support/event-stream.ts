import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import type { LiveMessage } from '../../src/faces/checkout/page/page.ts';

/** The received part of a stream of server-sent events. */
export type EventStream = {
  status: number;
  headers: IncomingHttpHeaders;
  text(): string;
  /** The events of type `page`, oldest first. */
  messages(): (LiveMessage & { id: string })[];
  hasEnded(): boolean;
  close(): void;
  /** Stops reading bytes. */
  pause(): void;
};

/** Opens a stream like a browser and collects its events. */
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
  // An aborted stream ends too.
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
