/** What a service holds that requests can name, and what stands in their place until they are sent. */
export type Names = Readonly<Record<string, string>>;

/** One request of a connection, as text whose characters are bytes (latin1), with names like `{{key}}` in it. */
export type Shot = {
  /** For the figures, and for whoever reads a failure. */
  kind: string;
  method: string;
  /** The path of the OpenAPI file (`/v1/invoices/{invoiceId}`), or of `OTHER_ROUTES`; `null`: nothing stands there. */
  route: string | null;
  text: string;
  /** It may be refused as no HTTP at all. */
  isMalformed: boolean;
  /** What only this request can have as an answer. */
  proof: Proof;
};

type Proof =
  | { kind: 'none' }
  /** A path that leads nowhere, which the answer repeats. */
  | { kind: 'marker'; path: string }
  /** A request that is right in every way must be taken. */
  | { kind: 'valid'; json: string | null }
  /** It must be refused, with 400. */
  | { kind: 'refused' }
  /** A question that is right in every way is answered, with 200. */
  | { kind: 'answered' }
  | { kind: 'reads'; invoiceId: string }
  /** The body as it was sent, to be judged by the schema if it was taken. */
  | { kind: 'body'; json: string };

/** How a connection ends after its requests. */
export type Ending =
  /** By a request that says so; the server must close. */
  | { kind: 'close' }
  /** By bytes that are no request, or not only one. Nothing after `GET /smuggled` may ever be answered. */
  | { kind: 'wild'; what: string; text: string }
  /** The client goes away when so many bytes are sent, with a reset or not. */
  | { kind: 'leaves'; afterBytes: number; hard: boolean };

/** Everything that is sent over one connection, and where it is cut into pieces, in thousandths of its length. */
export type Exchange = { shots: Shot[]; ending: Ending; cuts: number[] };

/** The name of a transaction that paid. It stands in bodies, so it is as long as what it stands for. */
export const PAID_TX = `paidTx${'_'.repeat(54)}`;
/** The same of an invoice that can be paid. */
export const OPEN_INVOICE = `openInvoice${'_'.repeat(15)}`;

export function fillNames(text: string, names: Names): string {
  return text.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => names[name] ?? whole);
}

/** Text in UTF-8 as one character a byte. */
export function utf8(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Bytes as a literal that can be pasted into a program. */
export function showBytes(text: string, most = 6000): string {
  const shown = JSON.stringify(text.slice(0, most)).replaceAll(/[\u007f-\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return text.length > most ? `${shown} and ${text.length - most} more` : shown;
}
