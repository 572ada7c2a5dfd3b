import { encodeId } from '../../domain/ids.ts';
import { toIso } from '../../domain/time.ts';
import { countAddresses, type ListedAddress, listAddresses, MAX_LISTED } from '../../store/addresses.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { selectProject } from '../select-project.ts';
import { formatTable, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';

export type ListAddressOptions = { project?: string; after?: string };

/** The project's addresses by position, 10,000 at most; the rest with `--after`. */
export async function listProjectAddresses(terminal: Terminal, options: ListAddressOptions): Promise<Result> {
  const after = readPosition(options.after);
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const rows = await listAddresses(db, project.id, after);
    const { active, retired } = await countAddresses(db, project.id);
    const projectId = encodeId('prj', project.id);
    const next = (() => {
      if (active.tail + active.exact + retired === 0) return 'no address yet: add one with "quittance address add T…"';
      if (rows.length < MAX_LISTED) return null;
      return `there may be more: quittance address list --project ${projectId} --after ${rows.at(-1)?.position}`;
    })();
    return {
      data: {
        projectId,
        policy: project.policy,
        activeAddresses: active,
        data: rows.map(describe),
      },
      text: formatTable(
        ['POSITION', 'ADDRESS', 'POLICY', 'STATUS', 'DERIVED', 'CREATED'],
        rows.map((row) => [
          String(row.position),
          row.address,
          row.policy,
          row.retired_at === null ? 'active' : 'retired',
          row.derivation_index === null ? '' : `#${row.derivation_index + 1}`,
          toIso(row.created_at),
        ]),
      ),
      ...(next === null ? {} : { next }),
    };
  });
}

function describe(row: ListedAddress) {
  return {
    address: row.address,
    policy: row.policy,
    position: row.position,
    status: row.retired_at === null ? 'active' : 'retired',
    derivationIndex: row.derivation_index,
    createdAt: toIso(row.created_at),
    retiredAt: row.retired_at === null ? null : toIso(row.retired_at),
  };
}

function readPosition(text: string | undefined): number {
  if (text === undefined) return 0;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new CliError('INVALID_ARGUMENT', `--after is ${clip(text)}: give the position of an address, a whole number`);
}
