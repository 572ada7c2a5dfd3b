import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ALARM_KINDS, ALARMS } from '../../src/core/domain/alarm-kinds.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { labelsOf, matches, selectorsOf } from './promql.ts';

const ROOT = new URL('../../', import.meta.url);
const FOLDER = fileURLToPath(new URL('deploy/prometheus/', ROOT));

type Rule = { alert: string; expr: string; labels: { severity: string }; annotations: { runbook?: string } };
type Tried = { alertname: string; exp_alerts: readonly unknown[] };
type Panel = { title: string; targets?: { expr: string; legendFormat: string }[] };

const read = (path: string) => readFile(new URL(path, ROOT), 'utf8');
const [rulesText, triedText, dashboardText] = await Promise.all(
  ['deploy/prometheus/rules.yml', 'deploy/prometheus/rules.test.yml', 'deploy/grafana/quittance.json'].map(read),
);
const rules = (parse(rulesText ?? '') as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const panels = (JSON.parse(dashboardText ?? '') as { panels: Panel[] }).panels;
const targets = panels.flatMap((panel) => panel.targets ?? []);
const { registry } = createMetrics();

/** Prefixes of metrics other than ours that a query may use. */
const FOREIGN = /^(up$|probe_success$|patroni_|node_filesystem_)/;
/** Labels that Prometheus adds to every series. */
const OF_SCRAPES = ['job', 'instance'];

/** Every series that a scrape may contain, with its label names. */
const series = new Map(
  registry.getMetricsAsArray().flatMap((metric) => {
    const { name, type, labelNames } = metric as unknown as { name: string; type: string; labelNames: string[] };
    if (type !== 'histogram') return [[name, labelNames]] as [string, string[]][];
    return ['count', 'sum', 'bucket'].map((part): [string, string[]] => {
      return [`${name}_${part}`, part === 'bucket' ? [...labelNames, 'le'] : labelNames];
    });
  }),
);

function unknownIn(query: string, legend = ''): string[] {
  const ours = selectorsOf(query).filter(({ name }) => !FOREIGN.test(name));
  const known = new Set([...OF_SCRAPES, ...ours.flatMap(({ name }) => series.get(name) ?? [])]);
  return [
    ...ours.filter(({ name }) => !series.has(name)).map(({ name }) => name),
    ...ours.flatMap(({ name, matchers }) => {
      const labels = [...OF_SCRAPES, ...(series.get(name) ?? [])];
      return matchers.filter(({ label }) => !labels.includes(label)).map(({ label }) => `${name}{${label}}`);
    }),
    // Labels used for grouping and in legends.
    ...(ours.length === 0 ? [] : labelsOf(query, legend).filter((label) => !known.has(label))),
  ];
}

describe('deploy/prometheus/rules.yml', () => {
  test('each rule says when it alerts, for docs/reference/metrics.md', () => {
    const told = [...(rulesText ?? '').matchAll(/^ +- alert: \w+\n +# When (.+)$/gm)];
    expect(told).toHaveLength(rules.length);
  });

  test('a rule about alarms leads to their page', () => {
    const ofAlarms = rules.filter(({ expr }) => expr.includes('quittance_alarms_open'));
    expect(ofAlarms.length).toBeGreaterThan(5);
    expect(ofAlarms.filter(({ annotations }) => !annotations.runbook?.startsWith('docs/reference/alarms.md#'))).toEqual(
      [],
    );
  });

  test('no two rules have one name, and each says how urgent it is', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    expect(rules.filter(({ labels }) => !['critical', 'warning'].includes(labels.severity))).toEqual([]);
  });

  test('asks for metrics and labels that there are', () => {
    expect(rules.flatMap(({ expr }) => unknownIn(expr))).toEqual([]);
  });

  test('every kind of alarm is told by exactly one rule, and no rule names a kind that there is not', () => {
    const selectors = rules
      .flatMap(({ expr }) => selectorsOf(expr))
      .filter(({ name }) => name === 'quittance_alarms_open');
    const told = ALARM_KINDS.map((kind) => [kind, selectors.filter((selector) => matches(selector, { kind })).length]);
    expect(told.filter(([, count]) => count !== 1)).toEqual([]);
    const named = selectors.flatMap(({ matchers }) => matchers.flatMap(({ value }) => value.split('|')));
    expect(named.filter((kind) => !(ALARM_KINDS as readonly string[]).includes(kind))).toEqual([]);
  });

  test('an urgent alarm is told as critical, and only by such a rule', () => {
    const severitiesOf = (kind: string) =>
      rules.flatMap(({ expr, labels }) =>
        selectorsOf(expr).some((selector) => selector.name === 'quittance_alarms_open' && matches(selector, { kind }))
          ? [labels.severity]
          : [],
      );
    const urgent = ALARM_KINDS.filter((kind) => ALARMS[kind].isUrgent);
    expect(urgent.map((kind) => [kind, ...severitiesOf(kind)])).toEqual(urgent.map((kind) => [kind, 'critical']));
    expect(severitiesOf('of-a-newer-release')).toEqual(['warning']);
  });

  test('each rule is tried: when it alerts, and when not', () => {
    const { tests } = parse(triedText ?? '') as { tests: { alert_rule_test: Tried[] }[] };
    const tried = tests.flatMap((each) => each.alert_rule_test);
    const lacks = (isFiring: boolean) =>
      rules.filter(
        ({ alert }) =>
          !tried.some(({ alertname, exp_alerts }) => alertname === alert && exp_alerts.length > 0 === isFiring),
      );
    expect(lacks(true)).toEqual([]);
    expect(lacks(false)).toEqual([]);
  });
});

describe('deploy/grafana/quittance.json', () => {
  test('asks for metrics and labels that there are', () => {
    expect(targets.length).toBeGreaterThan(20);
    expect(targets.flatMap(({ expr, legendFormat }) => unknownIn(expr, legendFormat))).toEqual([]);
  });

  test('shows every metric of ours', () => {
    const shown = targets.flatMap(({ expr }) => selectorsOf(expr)).map(({ name }) => name);
    const ours = registry.getMetricsAsArray().map(({ name }) => name);
    const missing = ours.filter(
      (name) => name.startsWith('quittance_') && !shown.some((each) => each.startsWith(name)),
    );
    expect(missing).toEqual([]);
  });
});

test('a metric and a label that are not there are found', () => {
  expect(unknownIn('sum by (nonsense) (rate(quittance_transfers_total{kin="late"}[5m]))', '{{shop}}')).toEqual([
    'quittance_transfers_total{kin}',
    'nonsense',
    'shop',
  ]);
  expect(unknownIn('max(quittance_gone) > up')).toEqual(['quittance_gone']);
});

const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

/** Returns promtool's complaints, or an empty text. Debian's package `prometheus` contains promtool. */
function complaintsOf(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: FOLDER, input, encoding: 'utf8' });
  return status === 0 ? '' : `${stdout}${stderr}`;
}

describe.skipIf(!hasPromtool)('promtool (skipped where it is not on the path: it comes with Prometheus)', () => {
  test.each([
    ['test', 'rules', 'rules.test.yml'],
    ['check', 'config', 'prometheus.yml'],
  ])('%s %s %s', (...args) => {
    expect(complaintsOf(args)).toBe('');
  });

  test('check metrics: the names and the texts of all metrics are as they should be', async () => {
    expect(complaintsOf(['check', 'metrics'], await registry.metrics())).toBe('');
  });
});
