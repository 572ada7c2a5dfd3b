import { readId } from './arguments.ts';
import { strange } from './error.ts';
import type { components } from './openapi.ts';
import { type QuittanceOptions, readSettings } from './settings.ts';
import { createTransport } from './transport.ts';

type Schemas = components['schemas'];
type Options = { signal?: AbortSignal | undefined };

export type ListedEndpoint = Schemas['ListWebhookEndpointsAnswer']['data'][number];
/** `events`: `['all']`, or some event types; without it all. Without `secret` Quittance makes one. */
export type NewEndpoint = Schemas['CreateWebhookEndpoint'];
/** At least one member. */
export type EndpointChanges = Schemas['UpdateWebhookEndpoint'];
/** `overlap`: how long the former secret signs too, `'0'` to `'30d'`; `'24h'` if left out. */
export type Rotation = Schemas['RotateWebhookSecret'];

/** Manages the webhook endpoints of a project. All methods reject with a QuittanceError, or with the reason of your signal. */
export type Endpoints = {
  list(options?: Options): Promise<ListedEndpoint[]>;
  /** Adds an endpoint. `secret` is shown this one time; it is null if you gave your own. */
  create(endpoint: NewEndpoint, options?: Options): Promise<Schemas['CreateWebhookEndpointAnswer']>;
  /** Reads one endpoint, with its deliveries of 24 hours. */
  get(endpointId: string, options?: Options): Promise<Schemas['ReadWebhookEndpointAnswer']>;
  update(
    endpointId: string,
    changes: EndpointChanges,
    options?: Options,
  ): Promise<Schemas['UpdateWebhookEndpointAnswer']>;
  /** Gives an endpoint a new secret, shown this one time. */
  rotate(endpointId: string, rotation?: Rotation, options?: Options): Promise<Schemas['RotateWebhookSecretAnswer']>;
  /** Sends a ping now, and says what came of it. */
  test(endpointId: string, options?: Options): Promise<Schemas['TestWebhookEndpointAnswer']>;
  /** Stops deliveries until it is enabled. */
  disable(
    endpointId: string,
    why?: Schemas['DisableWebhookEndpoint'],
    options?: Options,
  ): Promise<Schemas['DisableWebhookEndpointAnswer']>;
  enable(endpointId: string, options?: Options): Promise<Schemas['EnableWebhookEndpointAnswer']>;
};

const PATH = '/v1/webhook-endpoints';
/** A test is answered when the receiver has answered, for which it has 15 s. */
const TEST_MS = 25_000;

/** Takes the options of `Quittance`; the key needs the scope `webhooks`. Throws a TypeError for options that cannot work. */
export function createEndpoints(options: QuittanceOptions): Endpoints {
  const settings = readSettings(options);
  const transport = createTransport(settings);
  const patient = createTransport({ ...settings, timeoutMs: Math.max(settings.timeoutMs, TEST_MS) });
  const send = (method: 'POST' | 'PATCH', path: string, input: object, { signal }: Options, by = transport) => {
    const headers = { 'content-type': 'application/json' };
    return by({ method, path, headers, body: JSON.stringify(input), signal });
  };
  const act = async <Answer>(
    method: 'POST' | 'PATCH',
    id: string,
    below: string,
    input: object,
    more: Options = {},
  ): Promise<Answer> =>
    confirm(await send(method, PATH + pathOf(id) + below, input, more, below === '/test' ? patient : transport), id);
  return {
    list: async ({ signal } = {}) => {
      const { data } = await transport({ method: 'GET', path: PATH, signal });
      if (!Array.isArray(data)) throw strange('no list of endpoints');
      return data;
    },
    create: async (endpoint, more = {}) => confirm(await send('POST', PATH, endpoint, more)),
    get: async (id, { signal } = {}) =>
      confirm(await transport({ method: 'GET', path: PATH + pathOf(id), signal }), id),
    update: (id, changes, more) => act('PATCH', id, '', changes, more),
    rotate: (id, rotation = {}, more) => act('POST', id, '/rotate', rotation, more),
    test: (id, more) => act('POST', id, '/test', {}, more),
    disable: (id, why = {}, more) => act('POST', id, '/disable', why, more),
    enable: (id, more) => act('POST', id, '/enable', {}, more),
  };
}

function pathOf(id: string): string {
  return `/${readId(id, 'whe')}`;
}

/** Takes an answer only if it is about the endpoint that was asked for; without `id` about any. */
function confirm<Answer>(answer: Record<string, unknown>, id = answer['endpointId']): Answer {
  if (typeof id !== 'string' || answer['endpointId'] !== id) throw strange('another endpoint');
  return answer as Answer;
}
