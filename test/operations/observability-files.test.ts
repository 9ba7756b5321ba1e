/** The dashboard and the alert rules use only metrics that exist, and link to pages that exist. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import GithubSlugger from 'github-slugger';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { send } from '../world/agent.ts';
import { ROOT } from '../world/checkout.ts';
import { STORES } from '../world/stores.ts';
import { READ, startWorld, WRITE } from '../world/world.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

type Rule = {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; runbook: string };
};
const rules: Rule[] = parse(read('deploy/prometheus/alerts.yaml')).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
);

type Panel = { title: string; targets?: { expr: string }[] };
const panels: Panel[] = JSON.parse(read('deploy/grafana/agent-broker.json')).panels;
const asked = [
  ...rules.map(({ alert, expr }) => ({ where: alert, expr })),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: title, expr }))),
];

const METRIC = /\b(?:agent_broker|process|nodejs)_[a-z0-9_]+/g;
/** Maps the name of a histogram's part to the histogram. */
const familyOf = (name: string, types: ReadonlyMap<string, string>): string => {
  const family = name.replace(/_(bucket|sum|count)$/, '');
  return types.get(family) === 'histogram' ? family : name;
};

/** The type of each metric, and the names of its labels. */
const types = new Map<string, string>();
const labels = new Map<string, Set<string>>();
/** The metrics of a broker on each store. */
const scraped: string[] = [];

beforeAll(async () => {
  for (const store of STORES) {
    const world = await startWorld(store);
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    for (const call of [READ, WRITE]) await agent.act(call);
    world.upstream.answer = (_request, response) => response.writeHead(500).end();
    await agent.act(READ);
    const { text } = await send(`${world.running.baseUrl}/metrics`, {});
    scraped.push(text);
    for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) types.set(name, type);
    for (const [, name = '', inside = ''] of text.matchAll(/^([a-z_0-9]+)\{(.*)\} \S+$/gm)) {
      const found = labels.get(name) ?? new Set();
      for (const [, label = ''] of inside.matchAll(/([a-z_]+)="/g)) found.add(label);
      labels.set(name, found);
    }
  }
});

test('every metric that they use is exported', () => {
  expect(asked.length).toBeGreaterThan(50);
  const wanted = asked.flatMap(({ where, expr }) => (expr.match(METRIC) ?? []).map((name) => ({ where, name })));
  // Exported with PostgreSQL only.
  const elsewhere = STORES.includes('postgres') ? /^$/ : /^agent_broker_pool_/;
  const missing = wanted.filter(({ name }) => !types.has(familyOf(name, types)) && !elsewhere.test(name));
  expect(missing).toEqual([]);
});

test('every expression is PromQL', () => {
  const problems = (expr: string): string[] => {
    const found: string[] = [];
    parser.parse(expr).iterate({
      enter: ({ type, from, to }) => {
        if (type.isError) found.push(`${expr.slice(0, from)} HERE ${expr.slice(from, to)}`);
      },
    });
    return found;
  };
  // The dashboard's variable stands for a duration.
  const written = asked.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m'));
  expect(written.flatMap(problems)).toEqual([]);
  expect(problems('sum by (le (rate(x[5m]))')).not.toEqual([]);
});

test('every metric is documented, and no other names are', () => {
  const page = read('docs/observability.md');
  const documented = new Set(page.match(METRIC));
  expect([...types.keys()].filter((name) => !documented.has(name))).toEqual([]);
  const known = (name: string) =>
    types.has(name) || (!STORES.includes('postgres') && name.startsWith('agent_broker_pool_'));
  expect([...documented].filter((name) => !known(name))).toEqual([]);
});

test('no label names an agent, a person, a connection or a repository', () => {
  const names = new Set([...labels].flatMap(([name, own]) => (name.startsWith('agent_broker_') ? [...own] : [])));
  expect([...names].sort()).toEqual(
    ['chore', 'code', 'commit', 'kind', 'le', 'part', 'platform', 'reason', 'result', 'store', 'use', 'version'].filter(
      (name) => names.has(name),
    ),
  );
});

describe('alerts', () => {
  test.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s has a severity, and a link to an existing part of the runbook',
    (_, rule) => {
      expect(['critical', 'warning']).toContain(rule.labels.severity);
      expect(rule.annotations.summary).not.toBe('');
      const [file = '', anchor] = rule.annotations.runbook.split('#');
      const slugger = new GithubSlugger();
      const anchors = [...read(file).matchAll(/^#{1,4} (.*)$/gm)].map(([, title = '']) => slugger.slug(title));
      expect(anchors).toContain(anchor);
    },
  );

  test('an alert on the first increase of a counter also fires for what was counted before the first scrape of a process', () => {
    const first = rules.flatMap(({ expr }) =>
      [...expr.matchAll(/increase\((\w+)\[15m\]\) > 0/g)].map(([, counter]) => ({ expr, counter })),
    );
    expect(first.map(({ counter }) => counter)).toEqual(['agent_broker_outcome_unknown_total']);
    for (const { expr, counter } of first)
      expect(expr).toContain(
        ` or (${counter} > 0 and on (instance, job) time() - process_start_time_seconds < ${15 * 60})`,
      );
  });

  test('the alert for an old backup also fires where there was none', () => {
    const expr = rules.find(({ alert }) => alert === 'AgentBrokerBackupOld')?.expr;
    expect(expr).toBe('time() - max(agent_broker_last_backup_timestamp_seconds) > 2 * 86400');
    for (const text of scraped) expect(text).toMatch(/^agent_broker_last_backup_timestamp_seconds 0$/m);
  });

  test('metrics named in the runbook are used by an alert or the dashboard', () => {
    const [, runbook = ''] = /^## Runbook\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(read('docs/operations.md')) ?? [];
    const named = new Set(runbook.match(METRIC));
    expect(named).toContain('agent_broker_log_oldest_unsigned_seconds');
    const all = asked.map(({ expr }) => expr).join('\n');
    expect([...named].filter((name) => !all.includes(name))).toEqual([]);
  });

  test('the alert for a lagging receipt log covers rows without index and rows without checkpoint', () => {
    const expr = rules.find(({ alert }) => alert === 'AgentBrokerLogLags')?.expr.match(METRIC);
    expect(expr).toEqual(['agent_broker_log_oldest_pending_seconds', 'agent_broker_log_oldest_unsigned_seconds']);
  });

  test('alert names are unique, and each part of the runbook has an alert', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    const [, runbook = ''] = /^## Runbook\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(read('docs/operations.md')) ?? [];
    const slugger = new GithubSlugger();
    const parts = [...runbook.matchAll(/^### (.*)$/gm)].map(([, title = '']) => slugger.slug(title));
    expect(parts.length).toBeGreaterThan(10);
    const led = new Set(rules.map(({ annotations }) => annotations.runbook.split('#')[1]));
    expect(parts.filter((part) => !led.has(part))).toEqual([]);
  });
});
