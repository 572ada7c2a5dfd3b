import { execFile, spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { FILE_VARIABLES, NEEDED_ROLES, VARIABLES } from '../../src/server/config/settings.ts';

const run = promisify(execFile);
const CHART = new URL('../../deploy/helm/quittance/', import.meta.url);
/** helm isn't one of our dependencies, and Debian doesn't package it. */
const HAS_HELM = spawnSync('helm', ['version']).status === 0;

const read = (name: string): Promise<string> => readFile(new URL(name, CHART), 'utf8');

test('the chart is of this release', async () => {
  const versions = [...(await read('Chart.yaml')).matchAll(/^(?:appV|v)ersion: (.*)$/gm)].map(([, version]) => version);
  expect(versions).toEqual([manifest.version, manifest.version]);
});

test('it has the roles that nothing works without, and sets only variables that there are', async () => {
  const values = await read('values.yaml');
  const roles = /^roles:\n((?: .*\n)+)/m.exec(values)?.[1] ?? '';
  expect([...roles.matchAll(/^ {2}(\w+):$/gm)].map(([, role]) => role)).toEqual([...NEEDED_ROLES]);
  const templates = await Promise.all(
    (await readdir(new URL('templates', CHART))).map((name) => read(`templates/${name}`)),
  );
  const named = `${values}${templates.join('')}`.match(/\b(?:QUITTANCE|DATABASE)_[A-Z_]+\b(?!=)/g) ?? [];
  expect(named.length).toBeGreaterThan(7);
  const known: readonly string[] = [...VARIABLES, ...FILE_VARIABLES.keys()];
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
});

test('Prometheus knows its processes by the job that rules and dashboard name', async () => {
  const [, label] = /^ {2}jobLabel: (.+)$/m.exec(await read('templates/metrics.yaml')) ?? [];
  expect(await read('templates/_names.tpl')).toContain(`\n${label}: quittance\n`);
  expect(await readFile(new URL('../../prometheus/rules.yml', CHART), 'utf8')).toContain('up{job="quittance"}');
});

describe.skipIf(!HAS_HELM)('as helm renders it', () => {
  const render = async (...args: string[]) => {
    const { stdout } = await run('helm', ['template', 'shop', fileURLToPath(CHART), ...args]);
    return stdout.split(/^---$/m).filter((text) => /^kind:/m.test(text));
  };
  const kindsOf = (objects: string[]) => objects.map((text) => /^kind: (\w+)$/m.exec(text)?.[1]).sort();

  test('it is three Deployments, a Service and one PodDisruptionBudget, and a ServiceMonitor where asked for', async () => {
    const usual = ['Deployment', 'Deployment', 'Deployment', 'PodDisruptionBudget', 'Service'];
    expect(kindsOf(await render())).toEqual(usual);
    const monitored = await render('--set', 'serviceMonitor.enabled=true');
    expect(kindsOf(monitored)).toEqual([...usual, 'Service', 'ServiceMonitor'].sort());
  });

  test('only the role "api" takes requests from outside, and is taken out while it is not ready', async () => {
    const deployments = (await render()).filter((text) => text.includes('kind: Deployment'));
    const probes = deployments.map((text) => {
      const [, role] = /name: QUITTANCE_ROLES\s+value: (\w+)/.exec(text) ?? [];
      const [, path, port] = /readinessProbe:\s+httpGet:\s+path: (\S+)\s+port: (\w+)/.exec(text) ?? [];
      return [role, path, port, text.includes('containerPort: 8080')];
    });
    expect(probes).toEqual([
      ['api', '/readyz', 'http', true],
      ['watcher', '/healthz', 'metrics', false],
      ['webhooks', '/healthz', 'metrics', false],
    ]);
    for (const text of deployments) {
      expect(text).toContain('enableServiceLinks: false');
      expect(text).toContain('readOnlyRootFilesystem: true');
    }
  });
});
