import type { FastifyRequest } from 'fastify';
import { AppError, invalidArgument } from '../../../core/domain/errors.ts';
import { say } from '../../../core/domain/message.ts';
import { keyMode } from '../../../core/domain/network.ts';
import { ACTIONS, type ActionName } from '../../operator/actions.ts';
import type { Actor } from '../../operator/actor.ts';
import { clip, FieldError } from '../../operator/input/problems.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';

/** A signed-in person's request. `projects` are the projects that the person may see, archived ones last. */
export type Visit = {
  actor: Actor;
  projects: readonly ListedProjectView[];
  /** The path of the page. Links that change only the query keep it. */
  path: string;
  /** Returns a token for a form in this session. */
  token(form: string): string;
};

/** Thrown if the user's role doesn't allow an action in the console. */
export class Forbidden extends Error {
  override readonly name = 'Forbidden';
  readonly action: ActionName;

  constructor(action: ActionName) {
    super(`your role does not allow this: ${action} requires the role ${ACTIONS[action].role}`);
    this.action = action;
  }
}

/**
 * Returns a page's project: the requested one, or else the first one in use with real money, or else the first one. Returns `null` if
 * there's no project yet. A hidden project is reported as not found. Throws `NOT_FOUND`.
 */
export function chooseProject({ projects }: Visit, asked: string | undefined): ListedProjectView | null {
  if (asked === undefined)
    return usedOf(projects).find(({ network }) => keyMode(network) === 'live') ?? projects[0] ?? null;
  const found = projects.find(({ projectId }) => projectId === asked);
  if (found !== undefined) return found;
  throw noSuch('project', asked);
}

/** Returns the error for something that doesn't exist or is hidden from the visitor. */
export function noSuch(what: string, asked: string): AppError {
  return new AppError('NOT_FOUND', `${what} ${clip(asked)} does not exist, or you do not have access to it`);
}

/** Returns the entry with an id. Throws `NOT_FOUND`, with `unknown` as its text. */
export function entryOf<Entry>(entries: readonly Entry[], isIt: (entry: Entry) => boolean, unknown: string): Entry {
  const found = entries.find(isIt);
  if (found === undefined) throw new AppError('NOT_FOUND', unknown);
  return found;
}

export function usedOf(projects: Visit['projects']): ListedProjectView[] {
  return projects.filter(({ archivedAt }) => archivedAt === null);
}

/** Like `chooseProject`, but for pages that need a project. */
export function needProject(visit: Visit, asked: string | undefined): ListedProjectView {
  const project = chooseProject(visit, asked);
  if (project !== null) return project;
  throw new AppError(
    'NOT_FOUND',
    say`there is no project yet: create a project with "${{ command: 'project create' }}"`,
  );
}

/** Returns a console URL with the parameters that aren't `undefined`. It names the project only if there are several. */
export function urlTo(
  { projects }: Visit,
  path: string,
  project: Pick<ListedProjectView, 'projectId'> | null,
  query: Record<string, string | undefined> = {},
): string {
  const all = { project: projects.length > 1 ? project?.projectId : undefined, ...query };
  const entries = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  );
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries)}`;
}

/** Returns a part of a request's path, such as `keyId` for `/settings/keys/:keyId/revoke`. */
export function pathPart({ params }: FastifyRequest, name: string): string {
  return (params as Partial<Record<string, string>>)[name] ?? '';
}

/** Parses the browser's passkey response; the use case validates it. Returns `null` if it isn't JSON. */
export function parsePasskey(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The values of filled-in fields. */
export type Fields<Name extends string = string> = Partial<Record<Name, string>>;

/**
 * The maximum length of a field's value in a query and in a form. In a form, it's enough for a thousand addresses, or for a logo in base64.
 */
const MAX_CHARACTERS = { query: 4000, form: 44_000 };
const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;

/** Reads a request's query. Throws `INVALID_ARGUMENT`. */
export function readQuery<const Name extends string>({ url }: FastifyRequest, names: readonly Name[]): Fields<Name> {
  const start = url.indexOf('?');
  return readFields(new URLSearchParams(start === -1 ? '' : url.slice(start)), names, MAX_CHARACTERS.query);
}

/** Reads the form in a request's body. If `names` is `null`, any fields are accepted. Throws `INVALID_ARGUMENT`. */
export function readPostedForm<const Name extends string>(
  { headers, body }: FastifyRequest,
  names: readonly Name[] | null,
): Fields<Name> {
  if (!FORM.test(headers['content-type'] ?? '') || !Buffer.isBuffer(body))
    throw invalidArgument`this request did not come from a console form: open the page and send the form again`;
  return readFields(new URLSearchParams(body.toString('utf8')), names, MAX_CHARACTERS.form);
}

function readFields<Name extends string>(given: URLSearchParams, names: readonly Name[] | null, most: number) {
  const fields: Fields<Name> = {};
  for (const name of new Set(given.keys())) {
    const known = names === null ? (name as Name) : names.find((each) => each === name);
    if (known === undefined)
      throw invalidArgument`${clip(name)} is not a field of this form; the fields are ${names?.join(', ') ?? ''}`;
    const [value = '', ...others] = given.getAll(name);
    if (others.length > 0) throw new FieldError(name, `was sent ${others.length + 1} times: send it once`);
    if (value.length > most) throw new FieldError(name, `has ${value.length} characters, which is too many`);
    if (value.includes('\0')) throw new FieldError(name, 'contains a character that cannot be stored');
    // A form submits all of its fields, even empty ones.
    if (value.trim() !== '') fields[known] = value;
  }
  return fields;
}
