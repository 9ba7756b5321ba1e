/** An MCP server as a platform with a token per person: each person has a token and a session of their own. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { callOf } from '../upstream-mcp/connected.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { docsManifest, govern } from '../world/docs-platform.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { confirmAll, consentAsserted, outlivePerson } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, shared } from '../world/world.ts';

describe.each(ONE_STORE)(`MCP servers for people on %s${postgresNote}`, (store) => {
  const { server, world, organisation } = givenPeople(store);
  const mcp = shared(() => startMcpServer('sessions'));
  let agent: TestAgent;

  beforeEach(async () => {
    server.mcp.behind = mcp.url;
    const docs = docsManifest(server) as { auth: object };
    const tools = {
      kind: 'mcp',
      base_url: `${server.issuer}/mcp`,
      auth: docs.auth,
      per_person: { enabled: true, asserted: ['slack'] },
      scopes: { 'tools:all': ['tool *'] },
    };
    const applied = await govern(organisation, {
      platforms: { docs, tools },
      connections: { tools: { platform: 'tools' } },
    });
    expect(applied.status, applied.text).toBe(200);
    agent = await organisation.agent({ rules: ALLOW_ALL, grants: { tools: { scopeList: ['tools:all'] } } });
    mcp.seen.length = 0;
    return () => mcp.forget();
  });

  const call = (id: string | undefined) =>
    agent.act({ ...callOf('search_issues', 'tools:all', { query: id ?? 'nobody' }), ...(id && { caller: slack(id) }) });
  const give = async (id: string, login: string) => {
    await consentAsserted(server, (await call(id)).body.consent_url, login);
    await confirmAll(organisation);
  };
  const ownerOf = async (token: string): Promise<string> => {
    const answer = await fetch(`${server.issuer}/api/items`, { headers: { authorization: `Bearer ${token}` } });
    return ((await answer.json()) as { who: string }).who;
  };
  /** Returns who sent requests in each session of the server, and with which arguments. */
  async function sessions(): Promise<Map<string, Set<string>>> {
    const found = new Map<string, Set<string>>();
    for (const { rpc, headers, params } of mcp.seen) {
      if (rpc !== 'tools/call') continue;
      const who = await ownerOf((headers.authorization ?? '').slice('Bearer '.length));
      const session = String(headers['mcp-session-id']);
      found.set(session, (found.get(session) ?? new Set()).add(`${who} for ${params.arguments.query}`));
    }
    return found;
  }

  test('the first list of tools is requested for a person; each session belongs to one person', async () => {
    expect([(await call(undefined)).body.reason, (await call('U-ANN')).body.reason]).toEqual([
      'no_caller',
      'not_consented',
    ]);
    expect(mcp.seen).toEqual([]);
    await give('U-ANN', 'ann');
    await give('U-BOB', 'bob');
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(['U-ANN', 'U-BOB', 'U-ANN', 'U-BOB'].map(call));
      expect(answers.map(({ status, text }) => (status === 200 ? status : text))).toEqual([200, 200, 200, 200]);
      await outlivePerson(world, organisation, 'ann@docs.example');
    }
    const seen = await sessions();
    expect(seen.size).toBeGreaterThanOrEqual(2);
    for (const who of seen.values()) expect([['ann for U-ANN'], ['bob for U-BOB']]).toContainEqual([...who]);
  });

  test('a scope that a tool requires is requested from the person, together with the granted ones', async () => {
    await give('U-ANN', 'ann');
    expect((await call('U-ANN')).status).toBe(200);
    server.mcp.wants = 'tools.admin';
    onTestFinished(() => {
      server.mcp.wants = undefined;
    });
    const refused = await call('U-ANN');
    expect([refused.status, refused.body], refused.text).toEqual([
      412,
      expect.objectContaining({
        error: 'consent_required',
        reason: 'not_consented',
        detail: 'The platform refused the call: this person has consented to less than it needs.',
        consent_url: expect.any(String),
      }),
    ]);
    const row = await findAuditRow(world.db, organisation.id, refused.body.audit_id);
    expect(row).toMatchObject({ result: 'errored', reason: 'consent_required', upstream_status: 403 });
    await give('U-ANN', 'ann');
    await expectStatus(200, call('U-ANN'));
    // Nobody else is asked for more.
    await give('U-BOB', 'bob');
    expect((await call('U-BOB')).status).toBe(412);
  });
});
