import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { TLSSocket } from 'node:tls';

/** An answer in the parts in which it came. `certificateEnds`: Unix ms, `null` without TLS. */
export type UrlAnswer = {
  status: number;
  encoding: string;
  parts: readonly { text: string; atMs: number }[];
  certificateEnds: number | null;
};

/** `code`: as Node.js names what went wrong on the way. */
export type UrlRefusal = { code: string; reason: string };

const MAX_PARTS_BYTES = 64 * 1024;

/** Asks a URL once, on a connection of its own, follows nowhere, and reads the answer to its end. Never fails. */
export function askUrl(
  url: URL,
  { headers = {}, timeoutMs }: { headers?: Record<string, string>; timeoutMs: number },
): Promise<UrlAnswer | UrlRefusal> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const refuse = (error: Error) => resolve({ code: codeOf(error), reason: error.message || codeOf(error) });
    const send = url.protocol === 'https:' ? tlsRequest : plainRequest;
    const signal = AbortSignal.timeout(timeoutMs);
    const asking = send(url, { headers, agent: false, signal }, (response) => {
      const parts: { text: string; atMs: number }[] = [];
      let bytes = 0;
      const socket = response.socket;
      const ends = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : null;
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        bytes += text.length;
        if (bytes <= MAX_PARTS_BYTES) parts.push({ text, atMs: performance.now() - startedMs });
      });
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          encoding: response.headers['content-encoding'] ?? '',
          parts,
          certificateEnds: ends === null || Number.isNaN(ends) ? null : ends,
        }),
      );
      response.once('error', refuse);
    });
    asking.once('error', (error) =>
      refuse(
        signal.aborted
          ? Object.assign(new Error(`no whole answer within ${timeoutMs / 1000} s`), { code: 'LATE' })
          : error,
      ),
    );
    asking.end();
  });
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : 'ERROR';
}
