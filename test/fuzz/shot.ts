/** The service's values that requests can name, by the placeholder that stands for them until they are sent. */
export type Names = Readonly<Record<string, string>>;

/** One request of a connection, as text whose characters are bytes (latin1), with placeholders such as `{{key}}`. */
export type Shot = {
  /** For the figures, and for people who read a failure. */
  kind: string;
  method: string;
  /** The path in the OpenAPI file (`/v1/invoices/{invoiceId}`) or in `OTHER_ROUTES`; `null` if it doesn't exist. */
  route: string | null;
  text: string;
  /** It may be refused as invalid HTTP. */
  isMalformed: boolean;
  /** What only this request can get as an answer. */
  proof: Proof;
};

type Proof =
  | { kind: 'none' }
  /** A path that doesn't exist, which the answer repeats. */
  | { kind: 'marker'; path: string }
  /** A correct request must be accepted. */
  | { kind: 'valid'; json: string | null }
  /** It must be refused with 400. */
  | { kind: 'refused' }
  /** A correct question must be answered with 200. */
  | { kind: 'answered' }
  | { kind: 'reads'; invoiceId: string }
  /** The body that was sent, which must fit the schema if it was accepted. */
  | { kind: 'body'; json: string };

/** How a connection ends after its requests. */
export type Ending =
  /** With a request that says so; the server must close. */
  | { kind: 'close' }
  /** With bytes that aren't a request, or not only one. Nothing after `GET /smuggled` may ever be answered. */
  | { kind: 'wild'; what: string; text: string }
  /** The client disconnects after sending this many bytes, with or without a reset. */
  | { kind: 'leaves'; afterBytes: number; hard: boolean };

/** Everything that is sent over one connection, and where it's cut into pieces, in thousandths of its length. */
export type Exchange = { shots: Shot[]; ending: Ending; cuts: number[] };

/** The placeholder of a transaction that paid. It appears in bodies, so it has the same length as its value. */
export const PAID_TX = `paidTx${'_'.repeat(54)}`;
/** The same for an invoice that can be paid. */
export const OPEN_INVOICE = `openInvoice${'_'.repeat(15)}`;

export function fillNames(text: string, names: Names): string {
  return text.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => names[name] ?? whole);
}

/** Returns the text's UTF-8 bytes, one character per byte. */
export function utf8(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Returns bytes as a literal that can be pasted into a program. */
export function showBytes(text: string, most = 6000): string {
  const shown = JSON.stringify(text.slice(0, most)).replaceAll(/[\u007f-\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return text.length > most ? `${shown} and ${text.length - most} more` : shown;
}
