import { AppError } from '../../../core/domain/errors.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { requestBackup } from '../../operator/backup/backup-directory.ts';
import type { State } from '../../operator/doctor/check.ts';
import { type CheckView, gatherChecks } from '../../operator/doctor/run-doctor.ts';
import { type SettingView, type SystemView, showEnvironment, showSystem } from '../../operator/system/show-system.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm } from '../forms/form.ts';
import { type Column, duration, facts, ltr, many, number, outside, table, time } from '../page/pieces.ts';
import type { ConsoleDeps, Routes } from '../page/routes.ts';
import type { Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';

/** Adds the pages about the process, its settings, and problems around it. */
export function addSystemRoutes(routes: Routes, deps: ConsoleDeps): void {
  const { get } = routes;
  get('/settings/system', 'showSystem', ['project'], async ({ visit }) => {
    const system = await showSystem(deps, visit.actor);
    const { data: settings } = await showEnvironment(deps, visit.actor);
    const { release, node, postgres, schema, migrations, roles, startedAt, asOf } = system;
    return {
      title: 'System',
      beside: html`<a class="button quiet" href="/settings/doctor">Run the doctor</a>`,
      main: html`<section class="card" aria-labelledby="runs"><h2 id="runs">This process</h2>${facts([
        ['Quittance', ltr(release)],
        ['Node.js', ltr(node)],
        ['PostgreSQL', outside(postgres, 100)],
        ['Schema', html`${many(migrations, 'migration')}, the newest is ${ltr(schema)}`],
        ['Roles of this process', roles.join(', ')],
        ['Signed addresses', describeManifest(settings)],
        ['Started', html`${time(startedAt)} UTC, ${duration(Date.parse(asOf) - Date.parse(startedAt))} ago`],
      ])}</section>
${renderBackup(visit, system, settings)}
<section class="card flush" aria-labelledby="settings"><h2 id="settings">Environment of this process <small>as read at startup</small></h2>${table('Environment variables', SETTINGS, settings)}</section>
<p class="hint">To change these settings, change the environment and restart the process. Secrets are never shown. For a database, this page shows only the location. For a node, it shows only the operator and host.</p>`,
    };
  });
  get('/settings/doctor', 'runDoctor', ['project'], async ({ visit }) => {
    const { asOf, counts, checks } = await deps.examine(visit.actor);
    const parts = (Object.keys(HEADINGS) as State[]).flatMap((state) => {
      const found = checks.filter((check) => check.state === state);
      if (found.length === 0) return [];
      return html`<section class="card" aria-labelledby="${state}"><h2 id="${state}">${HEADINGS[state]}</h2><ul class="concerns">${gatherChecks(found).map(renderCheck)}</ul></section>`;
    });
    return {
      title: 'Doctor',
      beside: html`<p class="asof">As of ${time(asOf)} UTC <a href="/settings/doctor">Refresh</a></p>`,
      main: html`<p>${number(counts.failed)} failed, ${number(counts.warning)} warnings, ${number(counts.good)} good, ${number(counts.skipped)} not checked. On the server, you can run the doctor even when no service is running.</p>
${parts}`,
    };
  });
  addForm(routes, deps, {
    action: 'requestBackup',
    path: '/settings/system/backup',
    find: async ({ visit }) => {
      const { data } = await showEnvironment(deps, visit.actor);
      if (hasBackups(data)) return null;
      throw new AppError('CONFLICT', NO_BACKUP_DIR);
    },
    show: () => ({
      ...{ title: 'Back up now', button: 'Back up now', back: '/settings/system' },
      consequence: html`<p>The watcher process writes the whole ledger to its backup directory, restores the backup to a temporary database, and compares the two. Orders and payments continue in the meantime. Finally, the watcher process deletes the oldest backups, and keeps the configured number.</p>`,
    }),
    read: () => null,
    run: (actor) => requestBackup(deps, actor),
  });
}

const NO_BACKUP_DIR = 'no backup directory is configured: set QUITTANCE_BACKUP_DIR and restart the service';

const HEADINGS: Readonly<Record<State, string>> = {
  failed: 'Failed',
  warning: 'Warnings',
  good: 'Healthy',
  skipped: 'Not checked',
};

const RANKS: Readonly<Record<State, string>> = { failed: '1', warning: '2', good: '3', skipped: '3' };

function renderCheck({ name, state, says, fix }: CheckView) {
  const names = name.split(', ').map((each) => html`<span class="rank">${each}</span>`);
  return html`<li data-rank="${RANKS[state]}">${names}<div><p>${renderText(says)}</p>${fix === null ? null : html`<p class="hint">${renderText(fix)}</p>`}</div></li>`;
}

const settingOf = (settings: readonly SettingView[], wanted: string) =>
  settings.find(({ name }) => name === wanted)?.value ?? null;

/** Whether the service makes backups, as far as this process knows. */
const hasBackups = (settings: readonly SettingView[]): boolean => settingOf(settings, 'QUITTANCE_BACKUP_DIR') !== null;

/** Without a manifest, anyone who can write to the database can show payers another address. */
function describeManifest(settings: readonly SettingView[]): string {
  if (settingOf(settings, 'QUITTANCE_ADDRESS_MANIFEST') === null) return 'none';
  return settingOf(settings, 'QUITTANCE_MANIFEST_MODE') === 'enforce'
    ? 'unsigned addresses are rejected'
    : 'unsigned addresses raise an alarm';
}

function renderBackup(visit: Visit, { backup, backupRequestedAt, asOf }: SystemView, settings: readonly SettingView[]) {
  const ago = (iso: string) => html`${time(iso)} UTC, ${duration(Date.parse(asOf) - Date.parse(iso))} ago`;
  const found =
    backup === null
      ? html`<p>No backup yet.</p>`
      : html`${facts([
          ['Last backup', ago(backup.madeAt)],
          ['File', html`${outside(backup.file, 300)}${backup.isFinal ? ' (final: this ledger is closed)' : null}`],
          ['Verified', backup.verifiedAt === null ? 'not recorded in this database' : ago(backup.verifiedAt)],
        ])}`;
  const now =
    backupRequestedAt !== null
      ? html`<p role="status">A backup was requested at ${time(backupRequestedAt)} UTC. If the watcher process is running, it starts the backup within half a minute. It then verifies the backup, which takes as long as a restore. <a href="/settings/system">Refresh</a></p>`
      : hasBackups(settings) && isAllowed(visit.actor, 'requestBackup')
        ? html`<p><a class="button" href="/settings/system/backup">Back up now</a></p>`
        : null;
  return html`<section class="card" aria-labelledby="backups"><h2 id="backups">Backups</h2>${found}<p>${sayNextBackup(settings)}</p>${now}<p class="hint">Backups made by other programs are not shown here.</p></section>`;
}

/** A backup belongs on another machine, so the service writes backups to a directory that the operator has mounted. */
function sayNextBackup(settings: readonly SettingView[]): string {
  const hours = settingOf(settings, 'QUITTANCE_BACKUP_INTERVAL_HOURS');
  if (!hasBackups(settings)) {
    return 'Automatic backups are off. Set QUITTANCE_BACKUP_DIR to a directory on another disk or machine and restart the service. Quittance then makes and verifies one backup a day. To get a backup now, ask the server administrator: see docs/guides/backup.md.';
  }
  return `The watcher process makes and verifies a backup every ${hours ?? '24'} hours, in the directory QUITTANCE_BACKUP_DIR.`;
}

const SETTINGS: readonly Column<SettingView>[] = [
  ['Variable', ({ name }) => html`<bdi class="mono">${name}</bdi>`],
  ['Value', ({ value, isSet, isSecret }) => shownValue(value, isSet, isSecret)],
  ['From', ({ isSet }) => (isSet ? 'environment' : html`<span class="hint">default</span>`)],
];

function shownValue(value: string | null, isSet: boolean, isSecret: boolean): Html | string {
  if (isSecret) return isSet ? 'set, not shown' : 'not set';
  return value === null ? 'not set' : outside(value, MAX_VALUE);
}

/** This length is enough for a list of twenty nodes with their operators. */
const MAX_VALUE = 3000;
