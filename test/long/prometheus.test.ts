import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { createInvoice, eventually, payExactly, startTestService, type TestService } from '../support/service.ts';
import { findSteadyPort } from '../support/steady-port.ts';

type Panel = {
  title: string;
  fieldConfig?: { defaults: { noValue?: string } };
  targets?: { expr: string }[];
};
type Result = { metric: Record<string, string>; value: [number, string] }[];
type Rules = { groups: { rules: { name: string; health: string; state: string }[] }[] };

const fileOf = (path: string) => fileURLToPath(new URL(`../../deploy/${path}`, import.meta.url));
const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;

describe.skipIf(!hasPrometheus)('a real Prometheus (skipped where none is on the path: Debian has one)', () => {
  test('each panel shows something or says why not, no rule alerts of a service that is well, and both see one that is gone', async () => {
    const service = await startTestService({ blockMs: 500 });
    onTestFinished(() => service.stop());
    const ask = await startPrometheus(new URL(service.metricsUrl).host);
    const { panels } = JSON.parse(await readFile(fileOf('grafana/quittance.json'), 'utf8')) as { panels: Panel[] };
    const valuesOf = async ({ targets = [] }: Panel): Promise<Result> => {
      const queries = targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '10s'));
      return (await Promise.all(queries.map((query) => ask<{ result: Result }>('query', query)))).flatMap(
        ({ result }) => result,
      );
    };
    const unexplained = async () => {
      const asked = panels.filter(({ targets, fieldConfig }) => targets && !fieldConfig?.defaults.noValue);
      const found = await Promise.all(asked.map(valuesOf));
      return asked.filter((_panel, index) => found[index]?.length === 0).map(({ title }) => title);
    };
    const alerting = async () => {
      const { groups } = await ask<Rules>('rules');
      const rules = groups.flatMap((group) => group.rules);
      expect(rules.filter(({ health }) => health === 'err')).toEqual([]);
      return rules.filter((rule) => rule.state !== 'inactive').map(({ name }) => name);
    };
    await useService(service);
    await eventually(unexplained, (titles) => titles.length === 0);
    expect(await alerting()).toEqual([]);

    await service.stopService();
    await eventually(alerting, (names) => names.includes('QuittanceProcessSilent'));
    const now = Object.fromEntries(
      await Promise.all(
        panels.map(async (panel) => [panel.title, (await valuesOf(panel)).map(({ value }) => value[1])]),
      ),
    );
    expect(now).toMatchObject({ 'Silent processes': ['1'], Chain: [], 'Open alarms': [], 'Errors of ours': [] });
  });
});

/** Does what a shop and a payer do. */
async function useService(service: TestService): Promise<void> {
  const { invoiceId, checkoutUrl } = (await createInvoice(service)).body;
  await fetch(checkoutUrl);
  await payExactly(service, invoiceId);
}

/**
 * Runs Prometheus with deploy/prometheus, but with our process as the target and shorter intervals. Returns a function that queries its
 * API.
 */
async function startPrometheus(target: string) {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-prometheus-'));
  const config = parse(await readFile(fileOf('prometheus/prometheus.yml'), 'utf8'));
  const ours = config.scrape_configs.filter(({ job_name }: { job_name: string }) => job_name === 'quittance');
  const path = join(folder, 'prometheus.yml');
  await writeFile(
    path,
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [fileOf('prometheus/rules.yml')],
      scrape_configs: ours.map((job: object) => ({ ...job, static_configs: [{ targets: [target] }] })),
    }),
  );
  const url = `http://127.0.0.1:${await findSteadyPort()}`;
  const args = [`--config.file=${path}`, `--storage.tsdb.path=${folder}`, `--web.listen-address=${new URL(url).host}`];
  const prometheus = spawn('prometheus', [...args, '--log.level=error'], { stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = once(prometheus, 'exit');
  onTestFinished(async () => {
    prometheus.kill();
    await ended;
    await rm(folder, { recursive: true });
  });
  await eventually(
    () =>
      fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    (isReady) => isReady,
  );
  return async <Data>(what: string, query = ''): Promise<Data> => {
    const answer = await fetch(`${url}/api/v1/${what}?${new URLSearchParams({ query })}`);
    const { data, error } = (await answer.json()) as { data: Data; error?: string };
    if (error !== undefined) throw new Error(`${query}: ${error}`);
    return data;
  };
}
