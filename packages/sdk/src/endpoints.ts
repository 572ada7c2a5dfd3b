import { readId } from './arguments.ts';
import { strange } from './error.ts';
import type { components } from './openapi.ts';
import { type QuittanceOptions, readSettings } from './settings.ts';
import { createTransport } from './transport.ts';

type Schemas = components['schemas'];
type Options = { signal?: AbortSignal | undefined };

export type ListedEndpoint = Schemas['ListWebhookEndpointsAnswer']['data'][number];
/** `events` is `['all']` or a list of event types (default: all). If you don't pass a `secret`, Quittance generates one. */
export type NewEndpoint = Schemas['CreateWebhookEndpoint'];
/** At least one field is required. */
export type EndpointChanges = Schemas['UpdateWebhookEndpoint'];
/** `overlap`: how long the previous secret also signs, from `'0'` to `'30d'` (default: `'24h'`). */
export type Rotation = Schemas['RotateWebhookSecret'];

/** Manages the webhook endpoints of a project. All methods reject with a QuittanceError, or with the reason of your signal. */
export type Endpoints = {
  list(options?: Options): Promise<ListedEndpoint[]>;
  /** Adds an endpoint. `secret` is returned only this once. It's null if you passed your own. */
  create(endpoint: NewEndpoint, options?: Options): Promise<Schemas['CreateWebhookEndpointAnswer']>;
  /** Returns one endpoint, with its deliveries in the last 24 hours. */
  get(endpointId: string, options?: Options): Promise<Schemas['ReadWebhookEndpointAnswer']>;
  update(
    endpointId: string,
    changes: EndpointChanges,
    options?: Options,
  ): Promise<Schemas['UpdateWebhookEndpointAnswer']>;
  /** Gives an endpoint a new secret, which is returned only this once. */
  rotate(endpointId: string, rotation?: Rotation, options?: Options): Promise<Schemas['RotateWebhookSecretAnswer']>;
  /** Sends a ping immediately and returns the result. */
  test(endpointId: string, options?: Options): Promise<Schemas['TestWebhookEndpointAnswer']>;
  /** Stops deliveries until the endpoint is enabled again. */
  disable(
    endpointId: string,
    why?: Schemas['DisableWebhookEndpoint'],
    options?: Options,
  ): Promise<Schemas['DisableWebhookEndpointAnswer']>;
  enable(endpointId: string, options?: Options): Promise<Schemas['EnableWebhookEndpointAnswer']>;
};

const PATH = '/v1/webhook-endpoints';
/** The response to a test arrives only after the receiver has responded, which may take up to 15 s. */
const TEST_MS = 25_000;

/** Accepts the same options as `Quittance`. The key needs the scope `webhooks`. Throws a TypeError for invalid options. */
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
      if (!Array.isArray(data)) throw strange('a response that is not a list of endpoints');
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

/** Throws if a response is about an endpoint other than `id`. Without `id`, any endpoint is accepted. */
function confirm<Answer>(answer: Record<string, unknown>, id = answer['endpointId']): Answer {
  if (typeof id !== 'string' || answer['endpointId'] !== id) throw strange('another endpoint');
  return answer as Answer;
}
