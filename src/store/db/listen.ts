import pg from 'pg';

const RELISTEN_MS = 500;

/** Holds one connection that listens, for ever, reconnecting with a pause. Tells each loss once. Returns its stop function. */
export function keepListening(
  config: pg.ClientConfig,
  channel: string,
  onNotify: (payload: string | null) => void,
  onError: (error: Error) => void,
): () => Promise<void> {
  let stopped = false;
  let isReported = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  const reconnect = (error?: Error) => {
    if (stopped || timer !== undefined) return;
    if (error !== undefined && !isReported) {
      isReported = true;
      onError(error);
    }
    timer = setTimeout(() => {
      timer = undefined;
      connect();
    }, RELISTEN_MS);
  };
  const connect = () => {
    const next = new pg.Client(config);
    client = next;
    next.on('error', reconnect);
    next.on('end', () => reconnect());
    next.on('notification', ({ payload = '' }) => onNotify(payload));
    next
      .connect()
      .then(() => next.query(`listen ${pg.escapeIdentifier(channel)}`))
      .then(() => {
        isReported = false;
        onNotify(null);
      })
      .catch((error: Error) => {
        next.end().catch(() => undefined);
        reconnect(error);
      });
  };
  connect();
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await client?.end().catch(() => undefined);
  };
}
