/** The share of the platforms' documented operations that the built-in manifests classify, and that no scope grows without a changelog entry. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseOperation } from '../../broker/policy/operation.ts';
import { compilePattern, relate } from '../../broker/policy/pattern.ts';
import { ROOT } from '../world/checkout.ts';
import { isReadOfSlack, manifestOf } from './classified.ts';
import { coverageOf, LISTED } from './coverage/count.ts';
import { githubLeftOut, slackLeftOut, stripeLeftOut } from './unscoped-operations.ts';

type SkippedTests = Readonly<Record<string, readonly string[]>>;

const LEFT_OUT: Record<(typeof LISTED)[number], SkippedTests> = {
  github: githubLeftOut,
  slack: slackLeftOut,
  stripe: stripeLeftOut,
};
/** Slack: all methods that are not omitted deliberately. */
const AT_LEAST = { github: 75, slack: 97, stripe: 65 };
const PREFIXES = { github: 'codehost', slack: 'slack', stripe: 'stripe' };

const atFirst = new Map(
  readFileSync(join(import.meta.dirname, 'coverage/granted-at-first.txt'), 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [scope = '', operations = ''] = line.split(/:(?: |$)/);
      return [scope, operations.split(', ')] as const;
    }),
);

/** Whether an operation is one of those, or allows no more than one of them. */
function isWithin(text: string, those: readonly string[]): boolean {
  if (those.includes(text)) return true;
  const operation = parseOperation(text);
  return those.filter(Boolean).some((one) => {
    const outer = parseOperation(one);
    return (
      operation.kind === 'http' &&
      outer.kind === 'http' &&
      outer.method === operation.method &&
      relate(outer.path, operation.path) === 'all'
    );
  });
}

describe.each(LISTED)('%s', (name) => {
  const coverage = coverageOf(name);
  const { scopes } = manifestOf(name);

  test(`at least ${AT_LEAST[name]} % of its operations are in a scope, by a rule that is exact except for its last segment`, () => {
    expect((100 * coverage.counted) / coverage.all).toBeGreaterThanOrEqual(AT_LEAST[name]);
  });

  test('the operations in no scope are exactly those that unscoped-operations.ts omits deliberately', () => {
    const patterns = Object.values(LEFT_OUT[name]).flat();
    const leaves = (pattern: string, operation: string): boolean => {
      const [method, path] = pattern.includes(' ') ? pattern.split(' ') : [undefined, pattern];
      const [asked, at = ''] = operation.includes(' ') ? operation.split(' ') : [undefined, operation];
      if (!at.startsWith('/')) return pattern === operation;
      if (method !== undefined && method !== asked) return false;
      return compilePattern(path ?? '', 'path').matches(at.replaceAll(/\{[^}]*\}/g, 'x1'));
    };
    expect(coverage.left.filter((one) => !patterns.some((pattern) => leaves(pattern, one)))).toEqual([]);
    expect(patterns.filter((pattern) => !coverage.left.some((one) => leaves(pattern, one)))).toEqual([]);
  });

  test('writing operations that were added to an existing scope are in the changelog', () => {
    const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
    const grown = Object.entries(scopes).flatMap(([scope, operations]) => {
      const before = atFirst.get(scope);
      const writes = operations.filter((one) => !/^(?:GET|query) /.test(one) && !isReadOfSlack(name, operations, one));
      return before === undefined ? [] : writes.filter((one) => !isWithin(one, before)).map((one) => [scope, one]);
    });
    const lines = changelog.split('\n');
    const unsaid = grown.filter(
      ([scope, one]) => !lines.some((line) => line.includes(`\`${scope}\``) && line.includes(`\`${one}\``)),
    );
    expect(unsaid).toEqual([]);
  });

  test('the list of its scopes, which is sent to agents, is at most a fifth longer than in the first release', () => {
    const first = [...atFirst.keys()].filter((scope) => scope.startsWith(`${PREFIXES[name]}:`));
    const now = Object.keys(scopes);
    expect(first.filter((scope) => !now.includes(scope))).toEqual([]);
    expect(now.length).toBeLessThanOrEqual(first.length * 1.2);
    expect(now.join(', ').length).toBeLessThanOrEqual(first.join(', ').length * 1.2);
  });
});
