/** A child’s grant is at most its parent’s grant on the same connection. */
import { describe, expect, test } from 'vitest';
import { attenuate, connectionChoices, effectiveGrant } from '../../broker/policy/attenuation.ts';
import type { Grant } from '../../broker/policy/facts.ts';
import { agent, ask, facts, grant, NOW, parent } from './world.ts';

const [READS, WRITES] = ['crm:contacts.read', 'crm:contacts.write'];

/** Facts about a child with these grants, of a parent with those. */
const family = (own: Grant[], theirs: Grant[]) =>
  facts({ agent: agent({ parent: parent({ grants: theirs }) }), grants: own });

describe('what both grants allow', () => {
  test.each<[term: string, child: Partial<Grant>, parent: Partial<Grant>, both: Partial<Grant>]>([
    ['scopes', { scopes: [READS, WRITES] }, { scopes: [WRITES, 'crm:admin'] }, { scopes: [WRITES] }],
    ['the child’s approval', { requireApproval: true }, { requireApproval: false }, { requireApproval: true }],
    ['the parent’s approval', { requireApproval: false }, { requireApproval: true }, { requireApproval: true }],
    ['the child’s earlier end', { expiresAt: NOW }, { expiresAt: NOW + 1 }, { expiresAt: NOW }],
    ['the parent’s earlier end', { expiresAt: NOW + 1 }, { expiresAt: NOW }, { expiresAt: NOW }],
    ['the only end', { expiresAt: null }, { expiresAt: NOW }, { expiresAt: NOW }],
    [
      'recipients',
      { constraints: { recipients: ['a@x.example', 'b@y.example'] } },
      { constraints: { recipients: ['@x.example'] } },
      { constraints: { recipients: ['a@x.example'] } },
    ],
    [
      'recipients of the parent',
      {},
      { constraints: { recipients: ['@x.example'] } },
      { constraints: { recipients: ['@x.example'] } },
    ],
    [
      'repositories',
      { constraints: { repos: ['acme/*'] } },
      { constraints: { repos: ['acme/app', 'other/app'] } },
      { constraints: { repos: ['acme/app'] } },
    ],
    [
      'changes of refs',
      { constraints: { ref_changes: ['create', 'update'] } },
      { constraints: { ref_changes: ['update', 'delete'] } },
      { constraints: { ref_changes: ['update'] } },
    ],
    [
      'creating repositories, the child’s only',
      { constraints: { allow_repo_creation: true } },
      {},
      { constraints: {} },
    ],
    [
      'creating repositories, the parent’s only',
      {},
      { constraints: { allow_repo_creation: true } },
      { constraints: {} },
    ],
    [
      'creating repositories',
      { constraints: { allow_repo_creation: true } },
      { constraints: { allow_repo_creation: true } },
      { constraints: { allow_repo_creation: true } },
    ],
  ])('%s', (_term, child, theirs, both) => {
    expect(attenuate(grant(child), grant(theirs))).toEqual(grant({ ...child, ...both }));
  });
});

describe('the grant that an ask of a child uses', () => {
  const on = (connectionId: string | null, scopes: string[]) =>
    grant({ id: `on ${connectionId}`, connectionId, scopes });

  test.each<[sentence: string, own: Grant, theirs: Grant[], scopes: string[]]>([
    [
      'on the same connection',
      on('conn-2', [READS, WRITES]),
      [on('conn-2', [READS]), on('conn-main', [WRITES])],
      [READS],
    ],
    ['on another connection', on('conn-2', [READS]), [on('conn-main', [READS]), on(null, [READS])], []],
    ['on the default connection, by its name', on(null, [READS]), [on('conn-main', [READS, WRITES])], [READS]],
    [
      'on the default connection, by its name for the child',
      on('conn-main', [READS]),
      [on(null, [READS, WRITES])],
      [READS],
    ],
    ['on another platform', on('conn-2', [READS]), [{ ...on('conn-2', [READS]), platformId: 'other' }], []],
  ])('parent %s', (_sentence, own, theirs, scopes) => {
    expect(effectiveGrant(family([own], theirs), ask())?.scopes).toEqual(scopes);
  });

  test('is none on another platform than that of the facts', () => {
    expect(
      effectiveGrant(facts({ grants: [grant({ platformId: 'other' })] }), ask({ platformId: 'other' })),
    ).toBeUndefined();
  });
});

describe('the grants among which an ask has to choose', () => {
  const on = (connectionId: string | null, platformId = 'crm') =>
    grant({ id: `on ${connectionId}`, connectionId, platformId });
  const two = [on('conn-3'), on('conn-2')];

  test.each<[sentence: string, grants: Grant[], connection: string | undefined, choices: string[]]>([
    ['of several connections', two, undefined, ['on conn-2', 'on conn-3']],
    ['none for an ask that names a connection', two, 'conn-2', []],
    ['none beside a grant on the default connection', [...two, on('conn-main')], undefined, []],
    ['none beside a grant that names no connection', [...two, on(null)], undefined, []],
    ['none of a single connection', [on('conn-2')], undefined, []],
    ['none of another platform', [on('conn-2'), on('conn-3', 'other')], undefined, []],
  ])('%s', (_sentence, grants, connectionId, choices) => {
    const asked = ask(connectionId === undefined ? {} : { connectionId });
    expect(connectionChoices(grants, asked, 'conn-main').map(({ id }) => id)).toEqual(choices);
  });
});
