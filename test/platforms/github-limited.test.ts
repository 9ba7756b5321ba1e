/** The operations of GitHub's REST API that a grant limited to repositories and refs allows, one by one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CallAsk, Constraints, Method } from '../../broker/policy/facts.ts';
import { classify } from '../../broker/policy/operation.ts';
import { refuseRefs } from '../../broker/policy/refs/refs.ts';
import { writtenByRules } from '../../broker/policy/refs/rules.ts';
import { refuseRepositories } from '../../broker/policy/repos.ts';
import { rulesOf } from './classified.ts';
import { ALLOWED, NAMED } from './github-limited.ts';

const RULES = rulesOf('github');
const LIMITED: Constraints = { repos: ['acme/app'], refs: ['agent/*'], allow_repo_creation: true };

/** Each operation with `*` for the variable segments of its path. */
const operations = new Set(
  [
    ...readFileSync(join(import.meta.dirname, 'coverage/github.txt'), 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.replace(' deprecated', '').replaceAll(/\{[^}]*\}/g, '*')),
    ...[...RULES.scopes.values()]
      .flat()
      .flatMap((one) => (one.kind === 'http' ? [one.source.replaceAll('**', '*')] : [])),
  ].filter((one) => !one.startsWith('GET ')),
);

function callOf(operation: string): CallAsk {
  const [method, path = ''] = operation.split(' ') as [Method, string];
  const named = path.replace(/^\/(repos|git)\/\*\/\*/, '/$1/acme/app').replace(/^\/orgs\/\*/, '/orgs/acme');
  return { method, path: named.replaceAll('*', 'x1'), query: '', headers: {}, body: {} };
}

const inScope = [...operations].filter((one) => classify(RULES, callOf(one)).kind === 'classified');
const written = (operation: string) => writtenByRules(RULES, callOf(operation));
const namesRefs = (operation: string) => typeof written(operation) !== 'string' && written(operation).length > 0;

test('the operations that such a grant allows are exactly those that were reviewed (github-limited.ts)', () => {
  const allowed = inScope.filter((one) => {
    const call = callOf(one);
    return refuseRepositories(LIMITED, call, RULES) === undefined && refuseRefs(LIMITED, RULES, call) === undefined;
  });
  const listed = Object.values(ALLOWED).flat();
  expect(allowed.toSorted()).toEqual(listed.toSorted());
  expect(new Set(listed).size).toBe(listed.length);
});

test('the operations that write refs by name are exactly those that were reviewed, and are refused when they name none', () => {
  expect(inScope.filter(namesRefs).toSorted()).toEqual([...NAMED].toSorted());
  for (const one of NAMED) expect(refuseRefs(LIMITED, RULES, callOf(one)), one).toBeDefined();
});

describe('an operation that changes the protection of refs is refused on a grant that limits refs', () => {
  test.each<[why: RegExp, ...operations: string[]]>([
    [
      /rules that protect branches and tags/,
      'PUT /repos/*/*/branches/*/protection',
      'DELETE /repos/*/*/branches/release/*/protection',
      'DELETE /repos/*/*/branches/*/protection/enforce_admins',
      'PATCH /repos/*/*/branches/*/protection/required_pull_request_reviews',
      'POST /repos/*/*/branches/*/protection/restrictions/apps',
      'DELETE /repos/*/*/branches/agent/*/protection',
      'POST /repos/*/*/rulesets',
      'PUT /repos/*/*/rulesets/*',
      'DELETE /repos/*/*/Rulesets/*',
      'DELETE /orgs/*/rulesets/*',
      'DELETE /repos/*/*/immutable-releases',
      'PUT /orgs/*/settings/immutable-releases',
    ],
    [/a property by which rulesets choose/, 'PATCH /repos/*/*/properties/values', 'PUT /orgs/*/properties/schema/*'],
    [/may change the default branch/, 'PATCH /repos/*/*'],
    [/a holder of the key/, 'POST /repos/*/*/keys'],
    [
      /what workflows may do/,
      'PUT /repos/*/*/actions/permissions',
      'PUT /repos/*/*/actions/permissions/workflow',
      'PUT /orgs/*/actions/permissions/repositories/*',
    ],
    [
      /which branches are deployed/,
      'PUT /repos/*/*/environments/*',
      'DELETE /repos/*/*/environments/*',
      'POST /repos/*/*/environments/*/deployment-branch-policies',
      'DELETE /repos/*/*/environments/*/deployment_protection_rules/*',
    ],
    [
      /what GitHub stops in a push/,
      'POST /repos/*/*/secret-scanning/push-protection-bypasses',
      'DELETE /repos/*/*/secret-scanning/custom-patterns',
      'PATCH /orgs/*/secret-scanning/pattern-configurations',
      'POST /orgs/*/code-security/configurations/*/attach',
    ],
    [
      /a person who gets access/,
      'PUT /repos/*/*/collaborators/*',
      'PATCH /repos/*/*/invitations/*',
      'PUT /orgs/*/teams/*/repos/acme/app',
      'PUT /orgs/*/security-managers/teams/*',
    ],
    [
      /one whose review a rule requires/,
      'DELETE /repos/*/*/collaborators/*',
      'DELETE /orgs/*/teams/*',
      'DELETE /orgs/*/members/*',
      'PUT /orgs/*/outside_collaborators/*',
    ],
    [/what members may do/, 'PATCH /orgs/*'],
    [/Dependabot writes branches/, 'PUT /repos/*/*/automated-security-fixes'],
  ])('%s', (why, ...listed) => {
    for (const one of listed) {
      expect(refuseRefs({ refs: ['**'] }, RULES, callOf(one))?.detail, one).toMatch(why);
      expect(refuseRefs({ ref_changes: ['create', 'update'] }, RULES, callOf(one))?.detail, one).toMatch(why);
      expect(refuseRefs({ repos: ['acme/app'] }, RULES, callOf(one)), one).toBeUndefined();
    }
  });
});
