/** The governance version: every change of what governance files cover renews it, and other changes do not. */
import { beforeAll, describe, expect, test } from 'vitest';
import { putAgent, putGrant } from '../../broker/store/agents.ts';
import { findGovernanceVersion } from '../../broker/store/governance.ts';
import { putGuardrails, putPolicy } from '../../broker/store/governed-versions.ts';
import { updateOrganisation } from '../../broker/store/organisations.ts';
import { switchPlatform } from '../../broker/store/platforms.ts';
import type { Store } from '../../broker/store/store.ts';
import { childOf } from '../world/child.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

describe.each(STORES)(`versions of governance on %s${postgresNote}`, (kind) => {
  let store: Store;
  const world = givenWorld(kind);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  beforeAll(async () => {
    ({ store } = world.running.broker);
  });
  const version = (of = organisation) => findGovernanceVersion(store.db, of.id);

  /** Governed columns by table, each with another value. Columns that are missing here are not governed: times, counts, tokens. */
  const COLUMNS = {
    agents: {
      name: 'other',
      agent_type: 'mcp_client',
      status: 'suspended',
      status_detail: 'why',
      policy_id: crypto.randomUUID(),
      origin: 'governance',
      public_key_pem: 'pem',
      key_fingerprint: 'SHA256:x',
    },
    owners: { role: 'viewer', email: 'other@acme.example', origin: 'governance' },
    connections: {
      is_default: 0,
      label: 'other',
      credential: Buffer.from('other'),
      secret_reference: 'env:X',
      oauth: '{}',
      idle_ms: 600_000,
      wait_ms: 5_000,
    },
    grants: {
      platform_id: 'other',
      connection_id: crypto.randomUUID(),
      scopes: '[]',
      constraints: '{"repos":[]}',
      require_approval: 1,
      expires_at: 1,
      expires_text: '1d',
    },
    organisations: {
      name: `other ${kind}`,
      publish_identity_documents: 1,
      auto_suspend: '{}',
    },
  } as const;

  test('a new value in any column that a file covers renews the version, and the same value again does not', async () => {
    const other = await world.organisation();
    await other.platform();
    await other.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
    for (const [table, columns] of Object.entries(COLUMNS))
      for (const [column, value] of Object.entries(columns)) {
        const change = () =>
          store.db
            .updateTable(table as 'agents')
            .set({ [column]: value } as never)
            .where((table === 'organisations' ? 'id' : 'organisation_id') as 'organisation_id', '=', other.id)
            .execute();
        const before = await version(other);
        await change();
        const after = await version(other);
        expect([table, column, after === before]).toEqual([table, column, false]);
        await change();
        expect([table, column, await version(other)]).toEqual([table, column, after]);
      }
  });

  test('refreshed tokens renew the fact version only; tokens that a person connects or disconnects renew both versions', async () => {
    const other = await world.organisation();
    await other.platform();
    const versions = async () => {
      const { version: facts } = await store.db
        .selectFrom('fact_versions')
        .select('version')
        .where('organisation_id', '=', other.id)
        .executeTakeFirstOrThrow();
      return [facts, await version(other)];
    };
    const set = (columns: object) =>
      store.db.updateTable('connections').set(columns).where('organisation_id', '=', other.id).execute();
    const tokens = (at: number) => ({
      credential: Buffer.from(`token ${at}`),
      refresh_token: Buffer.from(`refresh ${at}`),
      token_id: String(at),
      oauth: JSON.stringify({ at }),
      status: at % 2 ? 'active' : 'reauth_needed',
      upstream_scopes: JSON.stringify([at]),
    });
    const none = { credential: null, refresh_token: null, token_id: null, oauth: null };
    const changes: [string, object, boolean][] = [
      ['connected', { ...tokens(1), revision: 2 }, true],
      ['refreshed', tokens(2), false],
      ['refreshed again', tokens(3), false],
      ['connected again', { ...tokens(4), revision: 3 }, true],
      ['refreshed after that', tokens(5), false],
      ['refreshed, and made the default', { ...tokens(6), is_default: 0 }, true],
      ['disconnected', { ...none, revision: 4 }, true],
      ['given a secret', { credential: Buffer.from('secret'), revision: 5 }, true],
      ['its secret sealed again', { credential: Buffer.from('the same, sealed again') }, true],
      ['connected in place of the secret', { ...tokens(7), revision: 6 }, true],
      ['tokens taken by whoever counts no revision', none, true],
    ];
    for (const [what, columns, isGoverned] of changes) {
      const [facts, governed] = await versions();
      await set(columns);
      const [factsNow, governedNow] = await versions();
      expect([what, factsNow !== facts, governedNow !== governed]).toEqual([what, true, isGoverned]);
    }
  });

  test('inserted and deleted rows, and new versions of policies, guardrails and platforms, renew the version', async () => {
    const { db } = store;
    const id = crypto.randomUUID();
    const place = { organisation_id: organisation.id, id };
    const here = (table: string) =>
      db
        .deleteFrom(table as 'agents')
        .where('id', '=', id)
        .execute();
    const row = await db.selectFrom('agents').selectAll().where('id', '=', agent.id).executeTakeFirstOrThrow();
    const owner = await db.selectFrom('owners').selectAll().where('id', '=', organisation.owner.id).executeTakeFirst();
    const grant = {
      ...place,
      agent_id: agent.id,
      platform_id: 'demo',
      connection_id: null,
      scopes: '[]',
      constraints: '{}',
      require_approval: 0 as const,
      expires_at: null,
      expires_text: null,
      created_at: 1,
    };
    const changes: [string, () => Promise<unknown>][] = [
      ['an agent comes', () => putAgent(db, { ...row, ...place, agent_id: 'agt_x', key_fingerprint: 'x' })],
      ['a grant comes', () => putGrant(db, grant)],
      ['a grant goes', () => here('grants')],
      ['an agent goes', () => here('agents')],
      [
        'an owner comes',
        () =>
          db
            .insertInto('owners')
            .values({ ...owner!, id, email: 'new@acme.example', oidc_subject: null, last_sign_in_at: null })
            .execute(),
      ],
      ['an owner goes', () => here('owners')],
      ['a policy', () => putPolicy(db, { organisationId: organisation.id, id, name: 'p', rules: '[]' }, 1)],
      ['its next version', () => putPolicy(db, { organisationId: organisation.id, id, name: 'p', rules: '[]' }, 1)],
      ['guardrails', () => putGuardrails(db, organisation.id, '[]', 1)],
      [
        'a platform is suspended',
        () => switchPlatform(db, { organisationId: organisation.id, platformId: 'demo' }, { suspended: true }),
      ],
      ['a connection comes', () => organisation.connection('demo', { isDefault: false })],
    ];
    for (const [what, change] of changes) {
      const before = await version();
      await change();
      expect([what, (await version()) === before]).toEqual([what, false]);
    }
  });

  test('children, their grants, settings outside of files, and other organisations do not renew the version', async () => {
    const busy = await world.organisation();
    await busy.platform();
    const parent = await busy.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
    const other = await world.organisation();
    const before = await version(busy);
    expect(before).toBeDefined();
    await childOf(world, busy, parent, { grants: [{ platform: 'demo', scopes: ['demo:read'] }] });
    await parent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' });
    await updateOrganisation(store.db, busy.id, { approval_ttl_ms: 123_456 });
    await updateOrganisation(store.db, other.id, { name: `another ${kind}` });
    expect(await version(busy)).toBe(before);
    await expect(
      store.db.transaction().execute(async (db) => {
        await updateOrganisation(db, busy.id, { publish_identity_documents: 1 });
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    expect(await version(busy)).toBe(before);
  });
});
