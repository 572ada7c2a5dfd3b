import { EVENT_TYPES } from '../../domain/event.ts';
import { Type } from '../../runtime/type.ts';
import { Flag, Line, ProjectId } from '../input/given.ts';
import { operation } from '../operation.ts';
import { addEndpoint, readNewEndpoint } from './add-endpoint.ts';
import { disableEndpoint, readDisableReason } from './disable-endpoint.ts';
import { enableEndpoint } from './enable-endpoint.ts';
import { listEndpoints } from './list-endpoints.ts';
import { readRotation, rotateSecret } from './rotate-secret.ts';
import { showEndpoint } from './show-endpoint.ts';
import { testEndpoint } from './test-endpoint.ts';
import { readChange, updateEndpoint } from './update-endpoint.ts';
import {
  AddedEndpointView,
  DisabledEndpointView,
  EnabledEndpointView,
  EndpointListView,
  EndpointView,
  RotatedSecretView,
  ShownEndpointView,
  TestedEndpointView,
} from './views.ts';

const EndpointId = Type.String({
  ...{ pattern: '^whe_[0-7][0-9a-hjkmnp-tv-z]{25}$', examples: ['whe_01k2m9t0b3e8zr6v5x4c7d1f2g'] },
});
const [URL_TEXT, URL_EXAMPLE] = ['https:// and a public address', 'https://shop.example.com/webhooks'];
const Target = {
  url: Type.Optional(Type.String({ description: URL_TEXT })),
  description: Type.Optional(Type.String({ description: 'One line of at most 200 characters' })),
  events: Type.Optional(
    Type.Array(Type.String(), {
      examples: [['invoice.paid']],
      description: `What it is told: \`all\`, or some of ${EVENT_TYPES.join(', ')}`,
    }),
  ),
};
const Overlap = Type.Optional(
  Type.String({ description: 'How long the former secret signs beside it, `0` to `30d`; `24h` if left out' }),
);
const Secret = Type.Optional(
  Type.String({ description: 'A secret of your own: `whsec_` and the base64 of 24 to 64 bytes; else one is made' }),
);

export const listEndpointsOperation = operation({
  action: 'listEndpoints',
  summary: 'The endpoints of a project and how they do, without their secrets',
  ...{ method: 'GET', path: '/webhooks', input: Type.Object({ projectId: ProjectId }), output: EndpointListView },
  read: ({ projectId }) => ({ projectId }),
  run: listEndpoints,
});

export const showEndpointOperation = operation({
  action: 'showEndpoint',
  summary: 'An endpoint: how it does, its deliveries of 24 hours, and fingerprints of its secrets',
  ...{ method: 'GET', path: '/webhooks/:endpointId', output: ShownEndpointView },
  input: Type.Object({ endpointId: EndpointId }),
  read: ({ endpointId }) => ({ endpointId }),
  run: showEndpoint,
});

export const addEndpointOperation = operation({
  action: 'addEndpoint',
  summary: 'Add an endpoint and show its signing secret, once',
  ...{ method: 'POST', path: '/webhooks', output: AddedEndpointView },
  input: Type.Object({
    projectId: ProjectId,
    ...Target,
    url: Type.String({ description: URL_TEXT, examples: [URL_EXAMPLE] }),
    secret: Secret,
  }),
  read: ({ projectId, url, ...given }) => ({ ...readNewEndpoint(given), projectId, url }),
  run: addEndpoint,
});

export const updateEndpointOperation = operation({
  action: 'updateEndpoint',
  summary: 'Change the URL of an endpoint, its description, or what it is told',
  ...{ method: 'PATCH', path: '/webhooks/:endpointId', output: EndpointView },
  input: Type.Object({ endpointId: EndpointId, ...Target }),
  read: ({ endpointId, ...given }) => ({ ...readChange(given), endpointId }),
  run: updateEndpoint,
});

export const rotateSecretOperation = operation({
  action: 'rotateSecret',
  summary: 'Give an endpoint a new secret and show it, once; the former one signs beside it for a while',
  ...{ method: 'POST', path: '/webhooks/:endpointId/rotate', output: RotatedSecretView },
  input: Type.Object({ endpointId: EndpointId, secret: Secret, overlap: Overlap, isKeyLost: Flag }),
  read: ({ endpointId, overlap = '24h', secret, isKeyLost = false }) => {
    return { ...readRotation({ overlap, secret }), endpointId, isKeyLost };
  },
  run: rotateSecret,
});

export const testEndpointOperation = operation({
  action: 'testEndpoint',
  summary: 'Send a ping to an endpoint now, and say what is wrong with its receiver',
  ...{ method: 'POST', path: '/webhooks/:endpointId/test', output: TestedEndpointView },
  input: Type.Object({ endpointId: EndpointId }),
  read: ({ endpointId }) => ({ endpointId }),
  run: testEndpoint,
});

export const enableEndpointOperation = operation({
  action: 'enableEndpoint',
  summary: 'Let an endpoint be attempted again, and what waits for it at once',
  ...{ method: 'POST', path: '/webhooks/:endpointId/enable', output: EnabledEndpointView },
  input: Type.Object({ endpointId: EndpointId }),
  read: ({ endpointId }) => ({ endpointId }),
  run: enableEndpoint,
});

export const disableEndpointOperation = operation({
  action: 'disableEndpoint',
  summary: 'Send an endpoint nothing until it is enabled',
  ...{ method: 'POST', path: '/webhooks/:endpointId/disable', output: DisabledEndpointView },
  input: Type.Object({ endpointId: EndpointId, reason: Line }),
  read: ({ endpointId, reason }) => ({ endpointId, reason: readDisableReason(reason) }),
  run: disableEndpoint,
});
