import { randomBytes } from 'node:crypto';
import { assertNever } from '../../domain/assert-never.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { type Rotation, rotateEndpointSecret } from '../../webhooks/rotate-secret.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';
import { CliError } from '../cli-error.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { noEndpoint, readEndpointId, readOverlap, readSecret, secretHint, showSecret } from './options.ts';
import { openSealingKeys } from './sealing-keys.ts';

export type RotateOptions = { secret?: string; overlap: string; keyIsLost?: boolean };

/** Gives an endpoint a new secret, and shows it this one time if it was made here. Former ones sign beside it until the overlap ends. */
export async function rotateWebhook(terminal: Terminal, reference: string, options: RotateOptions): Promise<Result> {
  const endpointId = readEndpointId(reference);
  const overlapMs = readOverlap(options.overlap);
  const secret =
    options.secret === undefined ? createWebhookSecret(randomBytes) : await readSecret(options.secret, terminal.stdin);
  return withDatabase(terminal, async ({ db, config }) => {
    const isKeyLost = options.keyIsLost === true;
    const keyRing = await openSealingKeys({ db, config, terminal }, { isKeyLost });
    const deps = { db, keyRing, now: unixMs(systemClock.now()), random: randomBytes };
    const rotation = await rotateEndpointSecret(deps, { endpointId, secret, overlapMs });
    if (rotation.kind !== 'rotated') throw refused(rotation, reference);
    const { formerEndsAt, isFormerLost } = rotation;
    const shown = showSecret(secret, options.secret);
    const hasOverlap = formerEndsAt > deps.now;
    return {
      data: {
        endpointId: reference,
        secret: shown.data,
        formerSecretEndsAt: toIso(formerEndsAt),
        isFormerSecretLost: isFormerLost,
      },
      text: formatFields([
        ['endpoint', reference],
        ['secret', shown.text],
        ['former secret', hasOverlap ? `signs too until ${toIso(formerEndsAt)}` : 'signs no more'],
      ]),
      next: [
        ...secretHint(options.secret, 'the secret is shown only now'),
        isFormerLost
          ? 'the former secret could not be opened with the master keys that are set here, so it ended at once'
          : hasOverlap
            ? 'until the former secret ends, each webhook carries a signature of both: give the receiver the new one meanwhile'
            : 'receivers that hold the former secret refuse webhooks from now on; what they refuse is tried again',
      ].join('\n'),
    };
  });
}

function refused(rotation: Exclude<Rotation, { kind: 'rotated' }>, reference: string): CliError {
  switch (rotation.kind) {
    case 'unknown':
      return noEndpoint(reference);
    case 'same':
      return new CliError('CONFLICT', `${reference} signs with this secret already; nothing was changed`);
    case 'overlapping':
      return new CliError(
        'CONFLICT',
        `${reference} was rotated before, and its former secret signs until ${toIso(rotation.endsAt)}: wait until then, or end all former secrets at once with --overlap 0`,
      );
    default:
      return assertNever(rotation);
  }
}
