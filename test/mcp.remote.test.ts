/** Remote MCP clients: the whole way from nothing but the address to a tool's answer, with the SDK's own client. */
import { beforeAll, describe, expect, test } from 'vitest';
import { browserOf, connectClient } from './world/mcp-person.ts';
import { postgresNote, STORES } from './world/stores.ts';
import { DEMO_RULES, type Organisation, startWorld, type World } from './world/world.ts';

describe.each(STORES)(`a remote MCP client on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.platform();
    await organisation.policy(DEMO_RULES, 'default');
  });

  test('knows nothing but the address, and lists what it may do once an owner consented', async () => {
    const decision = { name: 'Claude', grants: [{ platformId: 'demo', scopes: ['demo:read'] }] };
    const { client } = await connectClient(world, browserOf(world, organisation.owner), { decision });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('list_permissions');
    const answer = await client.callTool({ name: 'list_permissions', arguments: {} });
    expect(JSON.stringify(answer)).toContain('demo:read');
    await client.close();
  });
});
