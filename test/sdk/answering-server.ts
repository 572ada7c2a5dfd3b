import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type SeenRequest = { method: string; url: string; headers: IncomingMessage['headers']; body: string };

/** Answers one request. */
export type AnswerStep = (response: ServerResponse) => void;

/** Starts a server that answers each request with the next step, and repeats the last step. */
export async function startAnsweringServer(): Promise<{
  url: string;
  seen: SeenRequest[];
  answer(...steps: AnswerStep[]): void;
  stop(): Promise<void>;
}> {
  const seen: SeenRequest[] = [];
  let steps: AnswerStep[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    const step = steps.length > 1 ? steps.shift() : steps[0];
    step?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    answer: (...next) => {
      steps = next;
      seen.length = 0;
    },
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): AnswerStep {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}

export const INVOICE = {
  invoiceId: 'inv_01k2m9t0b3e8zr6v5x4c7d1f2g',
  externalId: 'order-1',
  status: 'PENDING',
  checkoutUrl: 'https://pay.example.com/c/Q7m1wCiHMoBqsVd3HqqRAD',
  expiresAt: '2026-09-01T12:30:00.000Z',
} as const;
