/** Counts which operations of the platforms' own documents the built-in manifests classify. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Method } from '../../../broker/policy/facts.ts';
import { classify } from '../../../broker/policy/operation.ts';
import { rulesOf } from '../classified.ts';

/** The platforms whose documents are listed in this folder. */
export const LISTED = ['github', 'slack', 'stripe'] as const;

/** `left`: in no scope. `wide`: in a scope, but by a rule with `**` before its last segment, which is not counted. */
export type Coverage = { counted: number; all: number; left: string[]; wide: string[]; deprecated: string[] };

/**
 * Counts an operation if its most specific rule has no `**` before its last segment. Slack's methods are counted as POST or GET, whichever is listed; those
 * that its client marks as deprecated are excluded. Deprecated operations of the other platforms are included.
 */
export function coverageOf(name: (typeof LISTED)[number]): Coverage {
  const rules = rulesOf(name);
  const lines = readFileSync(join(import.meta.dirname, `${name}.txt`), 'utf8')
    .trim()
    .split('\n')
    .slice(1);
  const deprecated = lines
    .filter((line) => line.endsWith(' deprecated'))
    .map((line) => line.replace(' deprecated', ''));
  const all = lines.filter((line) => name !== 'slack' || !line.endsWith(' deprecated'));
  const found: Coverage = { counted: 0, all: all.length, left: [], wide: [], deprecated };
  for (const operation of all.map((line) => line.replace(' deprecated', ''))) {
    const asked = name === 'slack' ? [`GET /${operation}`, `POST /${operation}`] : [operation];
    const answers = asked.map((one) => classify(rules, callOf(one))).filter(({ kind }) => kind === 'classified');
    const sources = answers.flatMap((one) => (one.kind === 'classified' ? one.operations : []));
    if (sources.length === 0) found.left.push(operation);
    else if (sources.some((source) => source.split('/').slice(0, -1).includes('**'))) found.wide.push(operation);
    else found.counted += 1;
  }
  return found;
}

function callOf(operation: string) {
  const [method, path = ''] = operation.split(' ') as [Method, string];
  return { method, path: path.replaceAll(/\{[^}]*\}/g, 'x1'), query: '', headers: {}, body: undefined };
}
