import type { FastifyRequest } from 'fastify';
import { encodeId } from '../../domain/ids.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';

/** The `ses_…` of the session that asks; `null` for the owner of a sandbox, who has none. */
export async function ownSessionOf({ findSession }: ConsoleDeps, request: FastifyRequest): Promise<string | null> {
  const session = await findSession(request);
  return session && encodeId('ses', session.id);
}
