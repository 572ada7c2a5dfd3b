// Whether the process in this container answers. Not whether it is ready: to start it anew would not bring back its database.
const port = process.env.QUITTANCE_PORT ?? 8080;
const { ok } = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2500) });
process.exit(ok ? 0 : 1);
