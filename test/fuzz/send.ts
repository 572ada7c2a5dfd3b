import { connect, type Socket } from 'node:net';

export type Sent = {
  bytes: Buffer;
  /** The server closed before the client did. */
  isClosedByServer: boolean;
};

export type Sending = {
  text: string;
  /** Positions in the text, ascending, where a new piece begins. */
  cuts: readonly number[];
  /**
   * `await-close`: the server must close. `probe`: the bytes may be the beginning of something, so a quiet client closes its half, and then
   * the server must close. `leave` and `reset`: the client disconnects at once.
   */
  until: 'await-close' | 'probe' | 'leave' | 'reset';
  hangMs?: number;
};

/** Far longer than any answer takes, but shorter than the server's own timeout (15 s), which would hide a hang. */
const HANG_MS = 12_000;
/** The time is measured in steps, so that a paused test process isn't mistaken for a hanging server. */
const STEPS = 40;
/** Longer than an answer usually takes; a wrong guess only loses that answer. */
const QUIET_MS = 120;
/** No requested answer is this large. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Sends bytes over one connection in pieces, and reads until it ends. Rejects if the server neither answers nor closes. */
export function send(port: number, { text, cuts, until, hangMs = HANG_MS }: Sending): Promise<Sent> {
  const bytes = Buffer.from(text, 'latin1');
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isEnded = false;
    let quiet: NodeJS.Timeout | undefined;
    const socket = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true });
    const finish = () => {
      clearInterval(deadline);
      clearTimeout(quiet);
      socket.destroy();
    };
    let steps = 0;
    const deadline = setInterval(() => {
      steps += 1;
      if (steps < STEPS) return;
      finish();
      const got = Buffer.concat(chunks).toString('latin1').slice(-500);
      reject(new Error(`the server hangs: no end within ${hangMs} ms; the last that came: ${JSON.stringify(got)}`));
    }, hangMs / STEPS);
    const awaitQuiet = () => {
      clearTimeout(quiet);
      if (until === 'probe' && !isEnded) quiet = setTimeout(() => socket.end(), QUIET_MS);
    };
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MAX_ANSWER_BYTES) socket.destroy(new Error('the answers have no end'));
      if (quiet !== undefined) awaitQuiet();
    });
    socket.on('end', () => {
      isEnded = true;
      socket.end();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A server that refuses early and closes resets the rest of the request. Answers sent before that count.
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') isEnded = true;
      else reject(error);
    });
    socket.on('close', () => {
      finish();
      resolve({ bytes: Buffer.concat(chunks), isClosedByServer: isEnded });
    });
    socket.on('connect', () => {
      void writePieces(socket, bytes, cuts).then(() => {
        if (until === 'leave') socket.destroy();
        else if (until === 'reset') socket.resetAndDestroy();
        else awaitQuiet();
      });
    });
  });
}

async function writePieces(socket: Socket, bytes: Buffer, cuts: readonly number[]): Promise<void> {
  const ends = [...cuts.filter((cut) => cut < bytes.length), bytes.length];
  let from = 0;
  for (const end of ends) {
    if (end > from) socket.write(bytes.subarray(from, end));
    from = end;
    // Gives the other side time to read this piece before the next one.
    if (end < bytes.length) await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  }
}
