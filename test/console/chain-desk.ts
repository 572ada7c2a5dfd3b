import { type Books, startBooks } from '../support/books.ts';
import { eventually } from '../support/service.ts';
import { type HeldNodes, holdNodes } from './chain-nodes.ts';
import { openConsole, type Reply, type TestConsole, tokenIn } from './console.ts';

/** A console on a ledger whose blocks the test records, with the nodes of its devnet. */
export type ChainDesk = Omit<TestConsole, 'service'> & {
  books: Books;
  hold: HeldNodes['hold'];
  /** Fills in and submits a form. */
  send(path: string, fields?: Record<string, string>, headers?: Record<string, string>): Promise<Reply>;
  /** Submits a form that starts a job, and returns the job's path. */
  start(kind: string, fields?: Record<string, string>, headers?: Record<string, string>): Promise<string>;
  /** Returns the page of a job once it has ended. */
  untilEnded(path: string): Promise<Reply>;
};

export async function openChainDesk(): Promise<ChainDesk> {
  const books = await startBooks();
  const { db, now } = books;
  const { nodes, hold } = holdNodes(() => books.rescanning());
  const desk = await openConsole({ db, now, publicUrl: () => 'http://127.0.0.1' }, { nodes });
  const send: ChainDesk['send'] = async (path, fields = {}, headers = {}) => {
    const page = await desk.get(path, headers);
    return desk.post(path, { token: tokenIn(page, path), ...fields }, headers);
  };
  return {
    ...{ ...desk, books, send, hold },
    start: async (kind, fields, headers) => {
      const { status, headers: answered, text } = await send(`/chain/${kind}`, fields, headers);
      const path = answered.get('location');
      if (status !== 303 || path === null) throw new Error(`it was not started: ${status} ${text}`);
      return path;
    },
    untilEnded: (path) =>
      eventually(
        () => desk.get(path),
        ({ headers }) => headers.get('refresh') === null,
      ),
    stop: async () => {
      await desk.stop();
      await books.stop();
    },
  };
}
