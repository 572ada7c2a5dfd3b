import { hostname, userInfo } from 'node:os';
import { AppError } from '../../domain/errors.ts';
import { type Actor, commandActor } from '../../operator/actor.ts';
import { detectSecret } from '../../operator/input/detect-secret.ts';
import { secretProblem } from './terminal.ts';

/** The bound of the schema. */
const MAX_LENGTH = 200;

/**
 * The name of the operator for the record: `--by`, else the user of the operating system; under sudo the user who called it.
 * The record is kept for ever, so a name that looks like a secret is refused.
 */
export function readOperator(option: string | undefined, env: NodeJS.ProcessEnv): string {
  if (option === undefined) return (env['SUDO_USER'] || systemUser(env)).slice(0, MAX_LENGTH);
  const name = option.trim();
  const secret = detectSecret(name);
  if (secret !== null) throw new AppError('INVALID_ARGUMENT', secretProblem('--by', secret).message);
  const length = [...name].length;
  if (length >= 1 && length <= MAX_LENGTH && !/\p{Cc}/u.test(name)) return name;
  const problem =
    length === 0 ? 'is empty' : length > MAX_LENGTH ? `has ${length} characters` : 'contains a line break';
  throw new AppError('INVALID_ARGUMENT', `--by ${problem}: give a name of 1 to ${MAX_LENGTH} characters on one line`);
}

/** In a container a process may run with a number that has no name. */
function systemUser(env: NodeJS.ProcessEnv): string {
  try {
    return userInfo().username;
  } catch {
    return env['USER'] || env['LOGNAME'] || `user ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** The actor of this command, on this machine. */
export function cliActor({ env }: { env: NodeJS.ProcessEnv }, by?: string): Actor {
  return commandActor(readOperator(by, env), hostname().slice(0, MAX_LENGTH) || null);
}
