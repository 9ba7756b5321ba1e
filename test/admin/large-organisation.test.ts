/** What the console polls, and the pages that many people open, read no more rows than they show, however large the organisation is. */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { consentOffer } from '../../broker/admin/people/consent-offer.ts';
import { newAgentId, uuidv4, uuidv7 } from '../../broker/crypto/ids.ts';
import { putMcpAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import { DEMO_RULES, givenWorld, READ, shared } from '../world/world.ts';

/** Agents, each with a grant, an MCP client and tokens of a person. */
const MANY = 600;
/** A page of 200, and what its rows refer to. */
const MOST_ROWS = 500;

describe('a large organisation', () => {
  const world = givenWorld('sqlite');
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const agent = shared(() => organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } }));

  beforeAll(async () => {
    const { store, clock } = world.running.broker;
    const { db } = store;
    await agent.act(READ);
    const own = await db.selectFrom('agents').selectAll().where('id', '=', agent.id).executeTakeFirstOrThrow();
    const grant = await db.selectFrom('grants').selectAll().where('agent_id', '=', agent.id).executeTakeFirstOrThrow();
    const { id: connection_id, platform_id } = await db
      .selectFrom('connections')
      .select(['id', 'platform_id'])
      .where('organisation_id', '=', organisation.id)
      .executeTakeFirstOrThrow();
    const now = clock();
    for (let at = 0; at < MANY; at++) {
      const id = uuidv4();
      const agent_type = at % 2 === 0 ? ('mcp_client' as const) : own.agent_type;
      await db
        .insertInto('agents')
        .values({ ...own, id, agent_id: newAgentId(), name: `agent ${at}`, agent_type })
        .execute();
      await db
        .insertInto('grants')
        .values({ ...grant, id: uuidv4(), agent_id: id })
        .execute();
      await putMcpAuthorisation(db, {
        organisation_id: organisation.id,
        id: uuidv7(now),
        agent_id: id,
        owner_id: organisation.owner.id,
        client_id: 'client',
        client_name: 'Client',
        redirect_host: 'app.example',
        scope: 'mcp:read',
        created_at: now - at,
        expires_at: now + 3_600_000,
      });
      const person = { organisation_id: organisation.id, id: uuidv4(), hash: uuidv4(), created_at: now };
      await db.insertInto('persons').values(person).execute();
      await db
        .insertInto('person_tokens')
        .values({
          organisation_id: organisation.id,
          id: uuidv4(),
          platform_id,
          connection_id,
          person_id: person.id,
          standing: at % 2 === 0 ? 'kept' : 'unconfirmed',
          consent_id: uuidv4(),
          status: 'active',
          credential: null,
          refresh_token: null,
          token_id: null,
          oauth: null,
          upstream_scopes: null,
          refresh_claim: null,
          refresh_claim_until: null,
          last_used_at: null,
          browser_hash: null,
          named_by: 'slack',
          verified: 0,
          agent_id: own.id,
          created_at: now + at,
        })
        .execute();
    }
  });

  /** Returns how many rows the store returned for this work. */
  async function rowsOf(work: () => Promise<unknown>): Promise<number> {
    const executor = world.running.broker.store.db.getExecutor();
    const original = executor.executeQuery.bind(executor);
    let rows = 0;
    using _ = vi.spyOn(executor, 'executeQuery').mockImplementation(async (...query) => {
      const result = await original(...query);
      rows += result.rows.length;
      return result as never;
    });
    await work();
    return rows;
  }
  const reading = (path: string) =>
    rowsOf(async () => {
      const { status, text } = await organisation.ask('GET', path as '/owner/agents');
      expect(status, text).toBe(200);
    });

  test.each([
    '/owner/me',
    '/owner/stats',
    '/owner/people?state=unconfirmed&limit=1',
    '/owner/people?state=unconfirmed&limit=200',
    '/owner/people?state=given&platform=demo&limit=50',
    '/owner/mcp-authorisations?state=live&limit=50',
    '/owner/agents?sort=name&limit=200',
    '/owner/agents?limit=1',
    '/owner/audit?limit=50&history=true',
    '/owner/approvals?status=pending&limit=200',
    '/owner/access-requests?status=pending&limit=200',
    '/owner/registrations?status=pending&limit=200',
    '/owner/standing-approvals?limit=50',
    '/owner/policies',
    '/owner/platforms',
    '/owner/connections',
    '/owner/owners',
  ])('GET %s', async (path) => {
    expect(await reading(path)).toBeLessThan(MOST_ROWS);
  });

  test('the consent page of an MCP client', async () => {
    const client = { client_id: 'new', client_name: 'Client', redirectUri: 'http://127.0.0.1:1/callback' };
    const rows = await rowsOf(() => consentOffer(world.running.broker, organisation.owner, client));
    // Names, 200 agents of clients, and 100 agents with their grants.
    expect(rows).toBeLessThan(2 * MOST_ROWS);
  });

  test('the twin: a list of all agents', async () => {
    expect(await reading('/owner/agents')).toBeGreaterThan(MANY);
  });
});
