import { formatSigned, type Reconciled, reconcileAddress } from '../chain/reconcile-address.ts';
import { AppError } from '../domain/errors.ts';
import { inGroups } from '../runtime/in-groups.ts';
import { type BookedAddress, listBookedAddresses } from '../store/balance-checks.ts';
import { findCursor } from '../store/chain-cursor.ts';
import { parseAddress } from '../tron/address.ts';
import { CliError, EXIT } from './cli-error.ts';
import { clip } from './clip.ts';
import { formatTable, type Result, type Terminal } from './terminal.ts';
import { type NodeCommand, withNodes } from './with-nodes.ts';

export type ReconcileOptions = { address?: string[]; network?: string };

/** As many addresses as a project lists. */
const MAX_ADDRESSES = 10_000;
/** At the same time: four requests each. */
const PARALLEL_ADDRESSES = 8;
/** While nobody waits for a payment the watcher asks for what is irreversible every eighth block, which is every 24 s. */
const PATIENCE_MS = 30_000;
const CONFIRM_AFTER_MS = 3000;

type Row = { address: string; outcome: Reconciled };

/** Compares what addresses hold on the chain with the ledger now. Exit code 1 unless all of them balance. */
export async function reconcileNow(terminal: Terminal, options: ReconcileOptions): Promise<Result> {
  const wanted = (options.address ?? []).map(readAddress);
  return withNodes(terminal, options.network, async (deps) => {
    const addresses = chooseAddresses(await listBookedAddresses(deps.db, deps.network, MAX_ADDRESSES), wanted, deps);
    const nodes = await deps.pool.available();
    const node = nodes.at(-1);
    if (node === undefined) {
      throw new AppError('NO_NODE', `no node of ${deps.network} answers: see them with "quittance chain status"`);
    }
    let patienceMs = PATIENCE_MS;
    const rows: Row[] = await inGroups(
      addresses,
      PARALLEL_ADDRESSES,
      async (address) => {
        const startedMs = performance.now();
        const before = await findCursor(deps.db, deps.network);
        const wait = { patienceMs, confirmAfterMs: CONFIRM_AFTER_MS };
        const outcome = await reconcileAddress({ ...deps, ...wait, node }, address);
        if (outcome.kind === 'too-early' && performance.now() - startedMs >= PATIENCE_MS) {
          const after = await findCursor(deps.db, deps.network);
          // A ledger that is not written to, as while the service is stopped, comes no nearer for the next addresses either.
          if (after?.solid.number === before?.solid.number) patienceMs = 0;
        }
        return { address: address.address, outcome };
      },
      (done) => {
        if (done < addresses.length) terminal.note(`${done} of ${addresses.length} addresses`);
      },
    );
    const isGood = rows.every(({ outcome }) => outcome.kind === 'good');
    return {
      data: { network: deps.network, node: node.origin, data: rows.map(describe) },
      text: tableOf(rows),
      ...(rows.length === 0 ? { next: 'no address yet: add one with "quittance address add T…"' } : {}),
      ...(isGood ? {} : { next: adviceOn(rows, deps), exitCode: EXIT.failed }),
    };
  });
}

function readAddress(text: string): string {
  const parsed = parseAddress(text.trim());
  if (parsed.kind === 'ok') return parsed.address;
  throw new CliError('INVALID_ARGUMENT', `--address ${clip(text)}: ${parsed.reason}`);
}

function chooseAddresses(all: BookedAddress[], wanted: string[], { network }: NodeCommand): BookedAddress[] {
  if (wanted.length === 0) return all;
  const byAddress = new Map(all.map((entry) => [entry.address as string, entry]));
  return [...new Set(wanted)].map((address) => {
    const found = byAddress.get(address);
    if (found !== undefined) return found;
    throw new CliError('NOT_FOUND', `no project on ${network} has the address ${address}`);
  });
}

function describe({ address, outcome }: Row): object {
  switch (outcome.kind) {
    case 'good': {
      const { block, balanceMicro, openingMicro } = outcome;
      return {
        address,
        status: 'good',
        block,
        balance: formatSigned(balanceMicro),
        opening: formatSigned(openingMicro),
      };
    }
    case 'differs': {
      const { ledgerMicro, chainMicro, from, to } = outcome;
      const difference = formatSigned(chainMicro - ledgerMicro);
      return {
        address,
        status: 'differs',
        ledger: formatSigned(ledgerMicro),
        chain: formatSigned(chainMicro),
        difference,
        from,
        to,
      };
    }
    case 'too-early':
      return { address, status: 'too-early', reason: outcome.reason };
  }
}

function tableOf(rows: readonly Row[]): string {
  const cells = rows.map(({ address, outcome }) => {
    if (outcome.kind === 'too-early') return [address, 'too early', '', '', '', outcome.reason];
    if (outcome.kind === 'good') {
      const { balanceMicro, block, openingMicro, isFirst } = outcome;
      const held = isFirst ? `first check: it held ${formatSigned(openingMicro)}` : '';
      return [
        address,
        'good',
        formatSigned(balanceMicro),
        formatSigned(balanceMicro),
        '0.000000',
        held || `at block ${block}`,
      ];
    }
    const { ledgerMicro, chainMicro, from, to } = outcome;
    const difference = formatSigned(chainMicro - ledgerMicro);
    return [
      address,
      'DIFFERS',
      formatSigned(ledgerMicro),
      formatSigned(chainMicro),
      difference,
      `in blocks ${from} to ${to}`,
    ];
  });
  return formatTable(['ADDRESS', 'STATUS', 'LEDGER', 'CHAIN', 'DIFFERENCE', 'NOTE'], cells);
}

function adviceOn(rows: readonly Row[], { network }: NodeCommand): string {
  const lines = rows.flatMap(({ outcome }) =>
    outcome.kind === 'differs'
      ? [`quittance chain repair --network ${network} --from ${outcome.from} --to ${outcome.to}`]
      : [],
  );
  if (lines.length === 0) return 'try again in a minute; the service must be running and catching up';
  return `read the blocks again in which it must have happened:\n${[...new Set(lines)].slice(0, 20).join('\n')}`;
}
