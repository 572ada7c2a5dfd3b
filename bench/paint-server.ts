import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';

/** The bare baseline: a document of 1 KB from memory, with one line of text and its style. */
const START = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bare</title><link rel="icon" href="data:,">
<style>body{font:1rem/1.5 system-ui,sans-serif}</style></head><body><p>`;
const END = '</p></body></html>';
const DOCUMENT = `${START}${'word '.repeat(300).slice(0, 1024 - START.length - END.length)}${END}`;

const app = Fastify({ logger: false });
app.get('/', (_request, reply) =>
  reply.type('text/html; charset=utf-8').header('Cache-Control', 'no-store').send(DOCUMENT),
);
await app.listen({ host: '127.0.0.1', port: 0 });
// This process ends together with the benchmark, however that ends.
process.on('disconnect', () => process.exit());
process.send?.({ url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/` });
