/** Rows that housekeeping deletes once they are over, and only then: each of them is a capability, or the record of a decision. */
import { describe, expect, test } from 'vitest';
import { purgeHeldJoins } from '../../broker/store/held-joins.ts';
import { purgeInvites } from '../../broker/store/invites.ts';
import { purgeMcpAuthorisations } from '../../broker/store/mcp-authorisations.ts';
import { purgeDeliveries } from '../../broker/store/notice-deliveries.ts';
import { purgeOAuthFlows } from '../../broker/store/oauth-flows.ts';
import { purgeOneTimeTokens } from '../../broker/store/one-time-tokens.ts';
import { purgePersonConsents } from '../../broker/store/person-consents.ts';
import { purgePersonSessions } from '../../broker/store/person-sessions.ts';
import { purgeRefusalCounts } from '../../broker/store/refusal-counts.ts';
import type { Schema } from '../../broker/store/schema.ts';
import { purgeSecretAuthorizations } from '../../broker/store/secret-authorizations.ts';
import { purgeStandingApprovals } from '../../broker/store/standing-approvals.ts';
import { purgeStaticKeys } from '../../broker/store/static-keys.ts';
import type { Db } from '../../broker/store/store.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const BEFORE = 1_800_000_000_000;
const [OVER, LATER] = [BEFORE - 1, BEFORE + 1];

/** The rows that are over, and those that are not: the columns that decide that. */
type Rows = { over: object[]; kept: object[] };

const EXPIRES: Rows = { over: [{ expires_at: OVER }], kept: [{ expires_at: LATER }] };
const ended = (expires_at: number, ended_at: number) => ({ expires_at, ended_at, ended_because: 'owner' });
const MAY_END: Rows = {
  over: [{ expires_at: OVER }, ended(LATER, OVER)],
  kept: [{ expires_at: LATER }, ended(LATER, LATER)],
};

describe.each(STORES)(`housekeeping on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());

  /** Inserts the rows of a table, purges it, and expects the others in it. `row`: the other columns, with a value that differs in each row. */
  const purges = async (
    table: keyof Schema,
    purge: (db: Db, before: number) => Promise<void>,
    { over, kept }: Rows,
    row: (name: string) => object,
  ) => {
    const stored = async () =>
      JSON.stringify(
        await world.db
          .selectFrom(table as 'invites')
          .selectAll()
          .where('organisation_id', '=', organisation.id)
          .execute(),
      );
    const put = async (times: object) => {
      const name = crypto.randomUUID();
      const values = { organisation_id: organisation.id, ...row(name), ...times };
      await world.db
        .insertInto(table)
        .values(values as never)
        .execute();
      return name;
    };
    const gone = [];
    for (const times of over) gone.push(await put(times));
    const left = [];
    for (const times of kept) left.push(await put(times));
    const before = await stored();
    await purge(world.db, BEFORE);
    const after = await stored();
    for (const name of gone) expect([before.includes(name), after.includes(name)], table).toEqual([true, false]);
    for (const name of left) expect(after, table).toContain(name);
  };

  test('deletes only one-time tokens, invites and secret authorisations that have expired', async () => {
    const owner_id = organisation.owner.id;
    await purges('one_time_tokens', purgeOneTimeTokens, EXPIRES, (token_hash) => ({
      token_hash,
      kind: 'sign_in',
      subject: owner_id,
      rotates: 0,
      created_at: 1,
    }));
    await purges('invites', purgeInvites, EXPIRES, (id) => ({
      id,
      token_hash: id,
      agent_name: 'x',
      grants: '[]',
      owner_id,
      created_at: 1,
    }));
    await purges('secret_authorizations', purgeSecretAuthorizations, EXPIRES, (id) => ({
      id,
      token_hash: id,
      agent_id: agent.id,
      platform_id: 'demo',
      label: 'x',
      owner_id,
      created_at: 1,
    }));
  });

  test('deletes only authorisations, static keys and standing approvals that expired or ended', async () => {
    const of = { agent_id: agent.id, created_at: 1 };
    const owner_id = organisation.owner.id;
    await purges('mcp_authorisations', purgeMcpAuthorisations, MAY_END, (id) => ({
      ...of,
      id,
      owner_id,
      client_id: 'c',
      client_name: 'c',
      redirect_host: 'h',
      scope: 'mcp:read',
    }));
    await purges('static_keys', purgeStaticKeys, MAY_END, (id) => ({
      ...of,
      id,
      token_hash: id,
      connection_id: id,
      label: id,
      owner_id,
    }));
    await purges('standing_approvals', purgeStandingApprovals, MAY_END, (id) => ({
      ...of,
      id,
      platform_id: 'demo',
      connection_id: id,
      grant_id: id,
      scope: 'demo:write',
      approval_id: id,
      uses: 2,
      uses_left: 1,
      decided_on: '{}',
      terms: Buffer.alloc(1),
      terms_hash: id,
      decided_by: owner_id,
      decided_how: 'console',
    }));
  });

  test('deletes only flows, consents and sessions of people that have expired', async () => {
    await purges('oauth_flows', purgeOAuthFlows, EXPIRES, (id) => ({
      id,
      state_hash: id,
      connection_id: id,
      owner_id: organisation.owner.id,
      flow: Buffer.alloc(1),
      created_at: 1,
    }));
    await purges('person_sessions', purgePersonSessions, EXPIRES, (cookie_hash) => ({
      cookie_hash,
      person_id: cookie_hash,
      consent_id: '',
    }));
    await purges('person_consents', purgePersonConsents, EXPIRES, (id) => ({
      id,
      token_hash: id,
      named_by: 'slack',
      verified: 0,
      agent_id: agent.id,
      family_id: agent.id,
      platform_id: 'demo',
      connection_id: id,
      person_id: id,
      status: 'pending',
      created_at: 1,
    }));
  });

  test('deletes only old messages that are not to be sent any more', async () => {
    const channel = { organisation_id: organisation.id, id: crypto.randomUUID() };
    await world.db
      .insertInto('notice_channels')
      .values({
        ...channel,
        name: 'ops',
        kind: 'ntfy',
        settings: '{}',
        rules: '{}',
        status: 'active',
        origin: 'owner',
        created_at: 1,
      } as never)
      .execute();
    const messages: Rows = {
      over: ['sent', 'over', 'gave_up'].map((state) => ({ created_at: OVER, state })),
      kept: [
        { created_at: OVER, state: 'due' },
        { created_at: LATER, state: 'sent' },
      ],
    };
    await purges('notice_deliveries', purgeDeliveries, messages, (id) => ({
      id,
      channel_id: channel.id,
      notice_id: id,
      event: 'call_held',
      subject_id: id,
      step: 'first',
      due_at: LATER,
      attempts: 1,
    }));
  });

  test('deletes only old joins of held calls, and counts of refusals', async () => {
    const created: Rows = { over: [{ created_at: OVER }], kept: [{ created_at: LATER }] };
    await purges('held_joins', purgeHeldJoins, created, (key) => ({
      key,
      agent_id: agent.id,
      separate: '',
      approval_id: key,
      open_until: LATER,
    }));
    const counted: Rows = { over: [{ window_start: OVER }], kept: [{ window_start: LATER }] };
    await purges('refusal_counts', purgeRefusalCounts, counted, (agent_id) => ({ agent_id, refusals: 1 }));
  });
});
