/** One answer as it arrived. */
export type WireResponse = {
  status: number;
  /** By lower-case name. */
  headers: Map<string, string>;
  body: string;
  /** The server said that it's the last one. */
  closes: boolean;
};

const STATUS_LINE = /^HTTP\/1\.1 ([1-5][0-9]{2}) [ -~]*$/;
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t -~]*)$/;

/**
 * Reads the answers of one connection strictly (RFC 9112). `methods` are those of the requests in order, because an answer to HEAD has no
 * body. Skips interim answers. Throws if the bytes aren't exactly answers; a truncated one at the end is an error unless `isCut`.
 */
export function readResponses(bytes: Buffer, methods: readonly string[], isCut = false): WireResponse[] {
  const responses: WireResponse[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) {
      if (isCut) return responses;
      throw new Error(`an answer has no end of its headers: ${rest.subarray(0, 300).toString('latin1')}`);
    }
    const { status, headers } = readHead(rest.subarray(0, end).toString('latin1'));
    rest = rest.subarray(end + 4);
    if (status < 200) continue;
    const hasBody = methods[responses.length] !== 'HEAD' && status !== 204 && status !== 304;
    const framed = hasBody ? readBody(rest, headers) : { body: '', used: 0 };
    if (framed === null) {
      if (isCut) return responses;
      throw new Error(`the body of an answer is not whole: ${rest.subarray(0, 300).toString('latin1')}`);
    }
    rest = rest.subarray(framed.used);
    const closes = headers.get('connection')?.toLowerCase() === 'close';
    responses.push({ status, headers, body: framed.body, closes });
  }
  return responses;
}

function readHead(text: string): { status: number; headers: Map<string, string> } {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const status = STATUS_LINE.exec(statusLine)?.[1];
  if (status === undefined) throw new Error(`no status line: ${statusLine.slice(0, 200)}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`no header of an answer: ${line.slice(0, 200)}`);
    if (headers.has(name.toLowerCase())) throw new Error(`the header ${name} came twice`);
    headers.set(name.toLowerCase(), value);
  }
  if (headers.has('content-length') && headers.has('transfer-encoding')) throw new Error('an answer has two lengths');
  return { status: Number(status), headers };
}

function readBody(rest: Buffer, headers: Map<string, string>): { body: string; used: number } | null {
  if (headers.get('transfer-encoding') === 'chunked') return readChunks(rest);
  // Without a length, the body extends to the end of the connection.
  const length = Number(headers.get('content-length') ?? rest.length);
  if (!Number.isInteger(length)) throw new Error(`no content-length: ${headers.get('content-length')}`);
  return rest.length < length ? null : { body: rest.subarray(0, length).toString('latin1'), used: length };
}

function readChunks(bytes: Buffer): { body: string; used: number } | null {
  let [at, body] = [0, ''];
  for (;;) {
    const end = bytes.indexOf('\r\n', at);
    if (end < 0) return null;
    const text = bytes.subarray(at, end).toString('latin1');
    if (!/^[0-9a-f]+$/i.test(text)) throw new Error(`no size of a chunk: ${text.slice(0, 100)}`);
    const size = Number.parseInt(text, 16);
    const next = end + 2 + size + 2;
    if (bytes.length < next) return null;
    if (bytes.subarray(next - 2, next).toString() !== '\r\n') throw new Error('a chunk does not end');
    body += bytes.subarray(end + 2, end + 2 + size).toString('latin1');
    at = next;
    if (size === 0) return { body, used: at };
  }
}
