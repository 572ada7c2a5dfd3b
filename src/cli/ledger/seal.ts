import { usageError } from '../../core/domain/errors.ts';
import { type Column, columnsText, formatFields } from '../../faces/operator/command-words.ts';
import {
  acceptRow,
  type ChangedRow,
  checkSeals,
  requiresSealsHere,
  type SealsView,
  sealLedger,
} from '../../faces/operator/ledger/seal-ledger.ts';
import { confirm } from '../terminal/ask-person.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';
import { type CommandDatabase, withDatabase } from '../terminal/with-database.ts';

type Options = { check?: boolean; accept?: string; yes?: boolean; by?: string };

const AS_OWNER = { asOwner: true };
const QUESTION = { question: 'Type yes to confirm: ', nothing: 'nothing was sealed' };

export async function printSealed(terminal: Terminal, options: Options): Promise<Result> {
  const { check, accept, by } = options;
  if (check === true && accept !== undefined)
    throw usageError`use either --check or --accept, not both: --check changes nothing`;
  const actor = cliActor(terminal, by);
  const onProgress = terminal.note;
  if (accept !== undefined) return printAccepted(terminal, accept, options);
  const run = async (deps: CommandDatabase) => {
    if (check === true) return checkSeals({ ...deps, onProgress }, actor);
    terminal.note(BEFORE);
    if (options.yes !== true) await confirm(terminal, QUESTION);
    return sealLedger({ ...deps, onProgress }, actor);
  };
  const print = async (deps: CommandDatabase) =>
    printSeals(await run(deps), await requiresSealsHere(deps.db, deps.config.rowMacs));
  return withDatabase(terminal, print, check === true ? {} : AS_OWNER);
}

const BEFORE =
  'Quittance is about to seal the rows that have no seal, and will then trust them, no matter who wrote them. First run "quittance reconcile" and "quittance manifest verify", or compare "quittance address list" with your wallet, and review "quittance key list", "quittance webhook list" and "quittance project list".';

async function printAccepted(terminal: Terminal, name: string, options: Options): Promise<Result> {
  const actor = cliActor(terminal, options.by);
  const data = await withDatabase(
    terminal,
    (deps) =>
      acceptRow(deps, actor, name, async (row) => {
        terminal.note(describeRow(row));
        if (options.yes !== true) await confirm(terminal, QUESTION);
      }),
    AS_OWNER,
  );
  return {
    data,
    text: `${data.was === 'missing' ? 'accepted as missing' : data.was === 'put-back' ? 'accepted as it is' : 'sealed again'}: ${data.table}:${data.id}`,
    next: `when everything is fixed, close the alarm: quittance chain acknowledge --alarm ${data.was === 'missing' ? 'rows-missing' : 'row-changed'}`,
  };
}

function describeRow({ table, id, was, fields }: ChangedRow): string {
  if (was === 'missing') return `${table}:${id} ${WRONG[was]}`;
  return `${table}:${id} ${WRONG[was]}. Its current content:\n${formatFields(fields.map(([field, value]) => [`  ${field}`, value]))}`;
}

const WRONG = {
  unsealed: 'has no seal',
  changed: 'does not match its seal',
  'unknown-key': 'was sealed with a master key that is not configured',
  missing: 'is missing',
  'put-back': 'has a valid seal, but is an earlier version of the row',
};

const TABLES: readonly Column<SealsView['tables'][number]>[] = [
  ['TABLE', 'table'],
  ['SEALED', 'sealed'],
  ['SEALED NOW', 'resealed'],
  ['UNSEALED', 'unsealed'],
  ['CHANGED', 'changed'],
  ['OTHER KEY', 'unknownKey'],
];

function printSeals(data: SealsView, isRequired: boolean): Result {
  const isUnsealed = data.tables.every(({ changed, unknownKey }) => changed + unknownKey === 0);
  const wrong = data.wrong.map(({ table, id, kind }) => `${table}:${id} ${WRONG[kind]}`);
  return {
    data,
    text: [columnsText(data.tables, TABLES), wrong.join('\n')],
    next: data.good
      ? `every row has a seal${isRequired ? '' : ': set QUITTANCE_ROW_MACS=require to reject rows without one'}`
      : isUnsealed
        ? 'see "Rows have no seal" in docs/guides/tampering.md'
        : 'see "A row was changed" in docs/guides/tampering.md',
    hasFailed: !data.good,
  };
}
