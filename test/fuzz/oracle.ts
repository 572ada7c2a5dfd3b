import { PLANTED_TAG } from './hostile-text.ts';
import { closedJudge, type JsonSchema, type Judge, type OpenApi, type Operation } from './openapi.ts';
import { OTHER_ROUTES } from './other-requests.ts';
import type { WireResponse } from './read-responses.ts';
import { fillNames, type Names, type Shot } from './shot.ts';
import { SMUGGLED } from './wild.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape are looked into.
type Json = any;

export type Oracle = {
  /** Throws if an answer breaks a promise. `isFirst` means that nothing was pipelined before the request. */
  judge(shot: Shot, response: WireResponse, isFirst: boolean): void;
  /** Does the same for an answer to bytes whose meaning is unknown. */
  judgeAny(response: WireResponse): void;
  /** Every request has an answer, even before bytes that can't be read. */
  isComplete: boolean;
};

const REQUEST_ID = /^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/;
/** Matches internals of the program. */
const TRACE = /\n\s+at |node_modules|\.[tj]s:\d|insert into|FST_ERR|ECONN|HPE_/;
/** The answers to bytes that aren't HTTP/1.1, before there is a request. */
const NO_REQUEST = new Set(['400 INVALID_REQUEST', '408 INVALID_REQUEST', '431 INVALID_REQUEST']);

/** Judges answers by the OpenAPI file and by rules for all answers. `canary` appears in everything that belongs to another project. */
export function createOracle(document: OpenApi, names: Names, canary: string): Oracle {
  const seenIds = new Set<string>();
  const problemJudge = closedJudge(problemSchemaOf(document));
  const judges = new Map<JsonSchema, Judge>();
  const judgeOf = (schema: JsonSchema): Judge => {
    const judge = judges.get(schema) ?? closedJudge(schema);
    judges.set(schema, judge);
    return judge;
  };
  const judgeAny = (response: WireResponse, isFull = false) => {
    const { status, headers, body } = response;
    const id = headers.get('x-request-id') ?? '';
    check(REQUEST_ID.test(id), `X-Request-Id is ${JSON.stringify(id)}`);
    check(!seenIds.has(id), `${id} was given to another request before`);
    seenIds.add(id);
    check(![...headers.keys()].some((name) => name.startsWith('access-control-')), 'another origin is allowed');
    check(!headers.has('x-injected'), 'a header was injected');
    check(!body.includes(PLANTED_TAG) || !typeOf(response).startsWith('text/html'), 'a planted tag stands in a page');
    check(status < 500 || (status === 503 && isFull), `the status is ${status}: ${body.slice(0, 300)}`);
    const isProblem = typeOf(response).startsWith('application/problem+json');
    check(isProblem || status < 400 || !isOfApi(headers), 'an error is no problem+json');
    // The answer to HEAD has no body.
    if (!isProblem || body === '') return;
    judgeProblem(response, problemJudge);
    check(!JSON.parse(body).detail.includes(SMUGGLED), 'a smuggled request was answered');
  };
  return {
    isComplete: true,
    judgeAny: (response) => judgeAny(response),
    judge: (shot, response, isFirst) => {
      // A stream that is requested behind another request doesn't have the connection to itself.
      judgeAny(response, shot.route === OTHER_ROUTES.live && !isFirst);
      check(!response.body.includes(canary) || asksForeign(shot), 'something of another project was told');
      if (isNoRequest(response)) {
        check(shot.isMalformed || shot.proof.kind === 'refused', 'a request was taken for no HTTP');
        return;
      }
      judgeStatus(document, shot, response, judgeOf);
      judgeProof(document, names, shot, response, judgeOf);
    },
  };
}

/** Node's own answers, made before there is a request, have no date. */
function isNoRequest({ status, headers, body, closes }: WireResponse): boolean {
  return closes && !headers.has('date') && NO_REQUEST.has(`${status} ${JSON.parse(body).code}`);
}

function judgeProblem({ status, headers, body }: WireResponse, judge: Judge): void {
  const problem: Json = JSON.parse(Buffer.from(body, 'latin1').toString('utf8'));
  const wrong = judge(problem);
  check(wrong === null, `the problem does not fit its schema: ${wrong}`);
  check(problem.status === status, `the problem says status ${problem.status}`);
  check(problem.requestId === headers.get('x-request-id'), 'the problem names another request');
  check(URL.canParse(problem.type), `the type is ${problem.type}`);
  check(!TRACE.test(problem.detail), `the program's inside is shown: ${problem.detail}`);
  if (status === 429 || status === 503) check(headers.has('retry-after'), 'Retry-After is missing');
}

/** Checks that the status and its code are documented for the request, and that the body fits the schema of that status. */
function judgeStatus(
  document: OpenApi,
  { route, method, isMalformed }: Shot,
  response: WireResponse,
  judgeOf: (schema: JsonSchema) => Judge,
): void {
  const { status, headers, body } = response;
  const item = route === null ? undefined : document.paths[route];
  if (item === undefined) {
    if (route !== null) judgeOther(route, method, response);
    else check(isMalformed || status === 404, `a path that leads nowhere was answered with ${status}`);
    return;
  }
  const operation: Operation | undefined = item[method === 'HEAD' ? 'get' : method.toLowerCase()];
  if (operation === undefined) {
    const isReported = status === (method === 'OPTIONS' ? 204 : 405) && headers.has('allow');
    check(isReported || status === 400, `${method} was answered with ${status}`);
    return;
  }
  const documented = operation.responses[String(status)];
  if (documented === undefined) throw new Error(`status ${status} is not documented for ${operation.operationId}`);
  if (method === 'HEAD') return;
  const type = typeOf(response).split(';', 1)[0] ?? '';
  const schema = documented.content[type]?.schema;
  if (schema === undefined) throw new Error(`${status} of ${operation.operationId} came as ${type}`);
  const value: Json = JSON.parse(Buffer.from(body, 'latin1').toString('utf8'));
  const wrong = judgeOf(schema)(value);
  check(wrong === null, `${status} of ${operation.operationId} does not fit its schema: ${wrong}`);
  if (status >= 400) {
    check(documented.description.split(', ').includes(value.code), `${value.code} is not documented for ${status}`);
  }
}

const PAGES = new Set<string>([OTHER_ROUTES.page, OTHER_ROUTES.ask, OTHER_ROUTES.receipt, OTHER_ROUTES.below]);

function judgeOther(route: string, method: string, response: WireResponse): void {
  const { status, headers, body } = response;
  const codes = [200, 204, 303, 400, 404, 405, 413, 415, 429, ...(route === OTHER_ROUTES.live ? [503] : [])];
  // For a client that already has the document.
  if (route === OTHER_ROUTES.openapi) codes.push(304);
  check(codes.includes(status), `${method} ${route} was answered with ${status}`);
  if (!route.startsWith('/c/') || status === 405 || (status === 204 && headers.has('allow'))) return;
  if (status === 400 || status === 413 || status === 415) return;
  check(headers.get('cache-control')?.startsWith('no-store') === true, 'what is below a link may be kept');
  check(headers.get('x-content-type-options') === 'nosniff', 'the type may be guessed');
  if (!PAGES.has(route) || method === 'HEAD') return;
  if (status === 303) return;
  check(typeOf(response) === 'text/html; charset=utf-8', `a page came as ${typeOf(response)}`);
  check(headers.get('content-security-policy')?.includes("default-src 'none'") === true, 'a page has no policy');
  check(headers.has('content-encoding') || body.startsWith('<!doctype html>'), 'a page is no HTML');
}

function judgeProof(
  document: OpenApi,
  names: Names,
  { proof, route, method }: Shot,
  response: WireResponse,
  judgeOf: (schema: JsonSchema) => Judge,
): void {
  const { status, body } = response;
  const isTaken = status === 201;
  const answer = (): Json => JSON.parse(Buffer.from(body, 'latin1').toString('utf8'));
  switch (proof.kind) {
    case 'marker':
      check(status === 404 && answer().detail.includes(`${proof.path}.`), `not the answer to ${proof.path}: ${body}`);
      return;
    case 'refused':
      check(status === 400, `what must be refused was answered with ${status}`);
      return;
    case 'answered':
      check(status === 200, `a right question was answered with ${status}: ${body}`);
      return;
    case 'reads':
      // A paid invoice can't be withdrawn.
      if (method === 'POST' && proof.invoiceId === '{{paid}}') check(answer().code === 'INVOICE_PAID', body);
      else
        check(status === 200 && answer().invoiceId === fillNames(proof.invoiceId, names), `not the invoice: ${body}`);
      return;
    case 'valid':
      if (proof.json === null) return;
      check(isTaken || status === 409, `a right request was answered with ${status}: ${body}`);
      if (isTaken) check(answer().externalId === JSON.parse(proof.json).externalId, 'not the invoice of this request');
      return;
    case 'body': {
      const operation = document.paths[route ?? '']?.[method.toLowerCase()];
      const schema = operation?.requestBody?.content['application/json']?.schema;
      if (schema === undefined || status >= 300) return;
      // A body without required members may be omitted.
      const sent: Json = JSON.parse(fillNames(Buffer.from(proof.json, 'latin1').toString('utf8'), names) || '{}');
      const wrong = judgeOf(schema)(sent);
      check(wrong === null, `what the schema refuses was taken: ${wrong}`);
      if (isTaken) check(answer().externalId === sent.externalId, 'not the invoice of this request');
      return;
    }
    case 'none':
      return;
  }
}

function problemSchemaOf({ paths }: OpenApi): JsonSchema {
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    const schema = operation.responses['400']?.content['application/problem+json']?.schema;
    if (schema !== undefined) return schema;
  }
  throw new Error('the OpenAPI file has no problem');
}

/** Anyone with a page's link may open it. Nothing else about the other project may be revealed. */
function asksForeign({ text }: Shot): boolean {
  return text.includes('{{foreignToken');
}

/** Whether an answer comes from the API, not from the pages that payers open. */
function isOfApi(headers: Map<string, string>): boolean {
  return !headers.has('x-robots-tag');
}

function typeOf({ headers }: WireResponse): string {
  return headers.get('content-type') ?? '';
}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(what);
}
