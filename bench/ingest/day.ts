import { hexToBytes } from '@noble/hashes/utils.js';
import { encodeMessage } from '@quittance/devnet/wire/protobuf-json';
import { TRANSACTION_INFO_LIST } from '@quittance/devnet/wire/schemas';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader } from '@quittance/tron/block-header';
import { writeBytes, writeElement, writeInt64 } from '@quittance/tron/protobuf';
import { signMessage } from '@quittance/tron/signature';
import { directTransfer, insideTransfers, leafOf, makeTransactions, rootOf } from './block-body.ts';
import { type LogTemplate, logsOfBlock, logTemplate } from './block-logs.ts';
import { makeProducers, type Producer } from './producers.ts';
import { createRandomStream, type RandomStream } from './random-stream.ts';
import { type MadeTransaction, NUMBER_PLACE, TIME_PLACE } from './transaction-parts.ts';

/** A USDT payment to us: a direct call, or one that appears only in the log of another contract's call. */
export type Payment = { number: number; account: string; amountMicro: string; isDirect: boolean };

/** `bodyCount` different sets of transactions take turns. Header, times and payments differ from block to block. */
export type DayPlan = {
  firstNumber: number;
  firstTimeMs: number;
  slotMs: number;
  blockCount: number;
  bodyCount: number;
  /** The number of transactions in a block; by default that of the main network. */
  transactions?: number | undefined;
  payments: Payment[];
};

/** The content of a block without its header. The positions of heights and times in `infos` are those of the templates. */
type Body = {
  transactions: Buffer;
  infos: Buffer;
  places: number[];
  logs: LogTemplate;
  leaves: Buffer[];
  root: string;
  made: MadeTransaction[];
  messages: Messages | null;
};

type Messages = { transactions: Buffer; infos: Buffer; places: number[] };

/** A block that is ready to send. */
export type DayBlock = {
  number: number;
  timeMs: number;
  id: string;
  /** `{"blockID":…,"block_header":{…}`: the response without its transactions and its last brace. */
  head: Buffer;
  /** The transactions, separated by commas. */
  transactions: Buffer[];
  infos(): Buffer;
  /** `Block` and `TransactionInfoList` as gRPC returns them. */
  message(): Buffer[];
  infosMessage(): Buffer;
  /** The number of USDT logs, and the logs as `eth_getLogs` returns them, separated by commas. */
  logCount: number;
  logs(): Buffer[];
  /** The data that verification hashes: the raw data and the whole of each transaction, and the header. */
  hashed(): { made: readonly MadeTransaction[]; header: Uint8Array };
};

export type Day = { producers: readonly Producer[]; last: number; block(number: number): DayBlock | null };

const PRODUCER_COUNT = 27;
/** Blocks above the solid one: the producers take turns, so 19 of the 27 are at or above it. */
export const SOLID_DEPTH = 18;
/**
 * Blocks above the first block that a service sees. The service counts the producers that built on its starting block, up to the
 * irreversible block.
 */
export const FIRST_SHOWN = 2 * SOLID_DEPTH;
/** Of java-tron 4.8. */
const VERSION = 34;

type Sealed = { header: BlockHeaderJson; id: string; signature: string; extra: MadeTransaction | null };

/** Creates the chain. All headers are linked, and signed by the producer whose turn it is. Takes half a millisecond per block. */
export function makeDay(plan: DayPlan): Day {
  const random = createRandomStream(1);
  const producers = makeProducers(PRODUCER_COUNT);
  const bodies = Array.from({ length: plan.bodyCount }, () => makeBody(makeTransactions(random, plan.transactions)));
  const payments = new Map(plan.payments.map((payment) => [payment.number, payment]));
  const sealed: Sealed[] = [];
  let parentHash = (plan.firstNumber - 1).toString(16).padStart(16, '0') + random.hex(24);
  for (let index = 0; index < plan.blockCount; index += 1) {
    const number = plan.firstNumber + index;
    const [body, producer] = [bodies[index % bodies.length], producers[index % PRODUCER_COUNT]];
    if (body === undefined || producer === undefined) throw new Error('a day needs bodies and producers');
    const payment = payments.get(number);
    const extra = payment === undefined ? null : makePayment(random, payment);
    const header = {
      number,
      txTrieRoot: extra === null ? body.root : rootOf([...body.leaves, leafOf(extra)]),
      witness_address: `41${producer.account}`,
      parentHash,
      version: VERSION,
      timestamp: plan.firstTimeMs + index * plan.slotMs,
    };
    const bytes = headerBytes(header);
    const id = blockIdOf(bytes, number);
    sealed.push({ header, id, signature: signMessage(bytes, producer.privateKey), extra });
    parentHash = id;
  }
  return {
    producers,
    last: plan.firstNumber + plan.blockCount - 1,
    block: (number) => {
      const index = number - plan.firstNumber;
      const [body, seal] = [bodies[index % bodies.length], sealed[index]];
      return body === undefined || seal === undefined ? null : toBlock(body, seal);
    },
  };
}

function makePayment(random: RandomStream, { account, amountMicro, isDirect }: Payment): MadeTransaction {
  const value = BigInt(amountMicro);
  return isDirect ? directTransfer(random, account, value) : insideTransfers(random, [{ to: account, value }]);
}

function makeBody(made: MadeTransaction[]): Body {
  const leaves = made.map(leafOf);
  const infos = Buffer.from(made.map(({ info }) => info).join());
  const transactions = Buffer.from(made.map(({ json }) => json).join());
  const body = { transactions, infos, places: placesIn(infos, PLACE), logs: logTemplate(made), leaves };
  return { ...body, root: rootOf(leaves), made, messages: null };
}

/** Creates the messages of a body when they are first requested. */
function messagesOf(body: Body): Messages {
  if (body.messages === null) {
    const infos = infosMessage(body.made);
    const transactions = Buffer.concat(body.made.map(({ whole }) => writeElement(1, whole)));
    body.messages = { transactions, infos, places: placesIn(infos, MESSAGE_PLACE) };
  }
  return body.messages;
}

function infosMessage(made: readonly MadeTransaction[]): Buffer {
  const transactionInfo = made.map(({ info }) => JSON.parse(info) as object);
  return Buffer.from(encodeMessage(TRANSACTION_INFO_LIST, { transactionInfo }));
}

const PLACE = `"blockNumber":${NUMBER_PLACE},"blockTimeStamp":${TIME_PLACE}`;
const NUMBER_AT = '"blockNumber":'.length;
const TIME_AT = NUMBER_AT + NUMBER_PLACE.length + ',"blockTimeStamp":'.length;

/** The height and time in a message of infos. Both are varints of constant length, up to the height 268,435,455 and the year 2109. */
const messagePlace = (number: number | string, timeMs: number | string) =>
  Buffer.concat([writeInt64(3, BigInt(number)), writeInt64(4, BigInt(timeMs))]);
const MESSAGE_PLACE = messagePlace(NUMBER_PLACE, TIME_PLACE);

function placesIn(infos: Buffer, place: string | Buffer): number[] {
  const places: number[] = [];
  for (let at = infos.indexOf(place); at >= 0; at = infos.indexOf(place, at + place.length)) places.push(at);
  return places;
}

function toBlock(body: Body, { header, id, signature, extra }: Sealed): DayBlock {
  const { number = 0, timestamp = 0 } = header;
  const more = extra === null ? [] : [logTemplate([extra], body.made.length, body.logs.counted)];
  const logs = [body.logs, ...more];
  const block = { blockID: id, block_header: { raw_data: header, witness_signature: signature } };
  return {
    number,
    timeMs: timestamp,
    id,
    head: Buffer.from(JSON.stringify(block).slice(0, -1)),
    transactions: extra === null ? [body.transactions] : [body.transactions, Buffer.from(`,${extra.json}`)],
    infos: () => {
      const last = extra === null ? Buffer.alloc(0) : Buffer.from(`,${extra.info}`);
      const infos = Buffer.concat([Buffer.from('['), body.infos, last, Buffer.from(']')]);
      const places = body.places.map((place) => place + 1);
      if (extra !== null) places.push(infos.lastIndexOf(PLACE));
      const [numberText, timeText] = [String(number), String(timestamp)];
      for (const place of places) {
        infos.write(numberText, place + NUMBER_AT, 'latin1');
        infos.write(timeText, place + TIME_AT, 'latin1');
      }
      return infos;
    },
    message: () => {
      const raw = writeElement(1, headerBytes(header));
      const sealed = writeElement(2, Buffer.concat([raw, writeBytes(2, hexToBytes(signature))]));
      const last = extra === null ? [] : [Buffer.from(writeElement(1, extra.whole))];
      return [messagesOf(body).transactions, ...last, Buffer.from(sealed)];
    },
    infosMessage: () => {
      const { infos, places } = messagesOf(body);
      const last = extra === null ? Buffer.alloc(0) : infosMessage([extra]);
      const message = Buffer.concat([infos, last]);
      const own = placesIn(last, MESSAGE_PLACE).map((place) => place + infos.length);
      for (const place of [...places, ...own]) messagePlace(number, timestamp).copy(message, place);
      return message;
    },
    logCount: logs.reduce((total, { places }) => total + places.length, 0),
    logs: () => logs.map((template) => logsOfBlock(template, { id, number })),
    hashed: () => ({ made: extra === null ? body.made : [...body.made, extra], header: headerBytes(header) }),
  };
}

function headerBytes(header: BlockHeaderJson): Uint8Array {
  const bytes = encodeBlockHeader(header);
  if (bytes === null) throw new Error(`a header that cannot be encoded: ${JSON.stringify(header)}`);
  return bytes;
}

/** Returns when a block of a live chain is available to its readers: after a fraction of `delayMs`, at least a seventh of it. */
export function publishedAtMs({ firstNumber, firstTimeMs, slotMs }: DayPlan, delayMs: number, number: number): number {
  const share = ((number * 2_654_435_761) % 2 ** 32) / 2 ** 32;
  return firstTimeMs + (number - firstNumber) * slotMs + (delayMs * (1 + 6 * share)) / 7;
}
