/** A platform whose MCP server moves to another address, while its connection keeps the credential. */
import { expect, test } from 'vitest';
import { putPlatform } from '../../broker/store/governed-versions.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { startWorld } from '../world/world.ts';
import { connected, SCOPES, SEARCH } from './connected.ts';

test('a session is presented to its own server only', async () => {
  const [before, after] = [await startMcpServer('sessions'), await startMcpServer('sessions')];
  const world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: `${before.address},${after.address}` });
  const { organisation, agent } = await connected(world, before);
  const move = async (to: string) => {
    const manifest = { kind: 'mcp', base_url: to, auth: { type: 'bearer' }, scopes: SCOPES };
    const made = { organisationId: organisation.id, platformId: 'tools', manifest: JSON.stringify(manifest) };
    await putPlatform(world.db, made, Date.now());
    const answer = await agent.act(SEARCH);
    expect(answer.status, answer.text).toBe(200);
  };
  const sessionsAt = ({ seen }: typeof before) =>
    new Set(seen.flatMap(({ headers }) => headers['mcp-session-id'] ?? []));
  await move(before.url);
  await move(after.url);
  expect([...sessionsAt(before), ...sessionsAt(after)]).toHaveLength(2);
  const known = sessionsAt(before);
  expect([...sessionsAt(after)].filter((id) => known.has(id))).toEqual([]);
  // Back at the first one, its session goes on.
  await move(before.url);
  expect(sessionsAt(before)).toEqual(known);
});
