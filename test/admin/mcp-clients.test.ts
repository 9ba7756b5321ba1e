/** The list of authorised MCP clients: pages, filters, counts, and what each agent is granted. */
import { describe, expect, test } from 'vitest';
import { consentOffer } from '../../broker/admin/people/consent-offer.ts';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import { endMcpAuthorisation, putMcpAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import type { TestAgent } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { fresh, givenWorld } from '../world/world.ts';

type Listed = { id: string; status: string; agent: { agent_id: string }; grants: unknown[] };
type Page = { authorisations: Listed[]; next?: string | null; count?: { live: number; over: number } };

describe.each(STORES)(`authorised MCP clients on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const list = async (query = ''): Promise<Page> =>
    (await organisation.ask('GET', `/owner/mcp-authorisations${query}`)).body;
  const idsOf = ({ authorisations }: Page) => authorisations.map(({ id }) => id);

  /** Authorises a client as an agent, this many hours ago. Returns the id. */
  async function authorised(agent: TestAgent, hoursAgo: number): Promise<string> {
    const { store, clock } = world.running.broker;
    const created_at = clock() - hoursAgo * HOUR_MS;
    const id = uuidv7(created_at);
    await putMcpAuthorisation(store.db, {
      organisation_id: organisation.id,
      id,
      agent_id: agent.id,
      owner_id: organisation.owner.id,
      client_id: 'client',
      client_name: 'Client',
      redirect_host: 'app.example',
      scope: 'mcp:read',
      created_at,
      expires_at: clock() + HOUR_MS,
    });
    return id;
  }
  const end = (id: string) =>
    endMcpAuthorisation(world.running.broker.store.db, id, 'owner', world.running.broker.clock());

  test('without parameters all are listed, newest first, each with what its own agent is granted', async () => {
    const reader = await organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
    const nothing = await organisation.agent({ grants: {} });
    const ids = [await authorised(reader, 3), await authorised(nothing, 2), await authorised(reader, 1)];
    const all = await list();
    expect(idsOf(all)).toEqual(ids.toReversed());
    const granted = [{ platformId: 'demo', scopes: ['demo:read'] }];
    expect(all.authorisations.map(({ grants }) => grants)).toEqual([granted, [], granted]);
    expect(Object.keys(all)).toEqual(['authorisations']);
  });

  test('pages contain each once, also those of the same time, and when one ends between two pages', async () => {
    const agent = await organisation.agent({ grants: {} });
    const ids = [];
    for (const hoursAgo of [1, 2, 2, 2, 3]) ids.push(await authorised(agent, hoursAgo));
    const pages: string[][] = [];
    let from = '';
    for (let count = 0; count < 10; count++) {
      const page = await list(`?limit=2${from}`);
      pages.push(idsOf(page));
      expect(page.count).toEqual({ live: 5 - count, over: count });
      if (page.next === null) break;
      from = `&cursor=${page.next}`;
      await end(page.authorisations[1]!.id);
    }
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 1]);
    expect(pages.flat().toSorted()).toEqual(ids.toSorted());
    expect([pages[0]![0], pages[2]![0]]).toEqual([ids[0], ids[4]]);
  });

  test('those that have access, those that have not, and those of an agent can be listed separately', async () => {
    const [one, other, revoked] = [
      await organisation.agent({ grants: {} }),
      await organisation.agent({ grants: {} }),
      await organisation.agent({ grants: {} }),
    ];
    const [live, ended, ofOther, ofRevoked] = [
      await authorised(one, 4),
      await authorised(one, 3),
      await authorised(other, 2),
      await authorised(revoked, 1),
    ];
    await end(ended);
    await organisation.ask('POST', `/owner/agents/${revoked.agentId}/revoke`, {});
    expect(idsOf(await list('?state=live'))).toEqual([ofOther, live]);
    expect(idsOf(await list('?state=over'))).toEqual([ofRevoked, ended]);
    const ofOne = await list(`?agent=${one.agentId}`);
    expect([idsOf(ofOne), ofOne.count]).toEqual([[ended, live], { live: 1, over: 1 }]);
    expect(idsOf(await list(`?agent=${one.id.toUpperCase()}&state=live`))).toEqual([live]);
    expect(idsOf(await list('?agent=nobody'))).toEqual([]);
    expect((await list('?limit=1')).count).toEqual({ live: 2, over: 2 });
  });

  test.each(['state=ended', 'limit=0', 'cursor=x', `cursor=${Buffer.from('["a"]').toString('base64url')}`])(
    'a query with %s is refused',
    async (query) => {
      const answer = await organisation.ask('GET', `/owner/mcp-authorisations?${query}`);
      expectEnvelope(answer, 400, 'invalid_request');
    },
  );

  test('the offer to a client names agents of other clients, those of the same name first, and only agents with nothing but scopes', async () => {
    const { broker } = world.running;
    const client = { client_id: 'new', client_name: 'Claude', redirectUri: 'http://127.0.0.1:1/cb' };
    const offer = () => consentOffer(broker, organisation.owner, client);
    expect(await offer()).toMatchObject({ name: 'Claude', known: [], alike: [], last: null });
    let created_at = broker.clock();
    const rename = async (agent: TestAgent, name: string) => {
      const set = { name, agent_type: 'mcp_client', created_at: ++created_at } as const;
      await broker.store.db.updateTable('agents').set(set).where('id', '=', agent.id).execute();
    };
    const [other, first, second] = [
      await organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } }),
      await organisation.agent({ grants: { demo: { scopeList: ['demo:read'], require_approval: 1 } } }),
      await organisation.agent({ grants: {} }),
    ];
    await rename(other, 'An_other');
    await rename(first, 'Claude');
    await rename(second, 'Claude 2');
    const { name, known, alike } = await offer();
    expect(name).toBe('Claude 3');
    expect(known.map((one) => one.agent_id)).toEqual([first.agentId, second.agentId, other.agentId]);
    expect(alike).toEqual([
      { agent_id: other.agentId, name: 'An_other', grants: [{ platformId: 'demo', scopes: ['demo:read'] }] },
    ]);
    await organisation.ask('POST', `/owner/agents/${first.agentId}/revoke`, {});
    expect((await offer()).name).toBe('Claude');
    // Neither character stands for others.
    const odd = await consentOffer(broker, organisation.owner, { ...client, client_name: 'An%' });
    expect(odd.known.map((one) => one.name)).toEqual(['An_other', 'Claude 2']);
    expect((await consentOffer(broker, organisation.owner, { ...client, client_name: 'An_' })).name).toBe('An_');
  });
});
