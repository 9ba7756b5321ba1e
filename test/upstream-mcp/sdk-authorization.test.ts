import { expect, test } from 'vitest';
import { connectAtOnce, outlive } from '../world/browser/connecting.ts';
import { startSdkAuthServer } from '../world/servers/sdk-auth-server.ts';
import { ALLOW_ALL, startWorld } from '../world/world.ts';
import { callOf } from './connected.ts';

test('a server made with the first SDK generation can be connected and called, and its token refreshed', async () => {
  const server = await startSdkAuthServer();
  const world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: server.address });
  const organisation = await world.organisation();
  const manifest = {
    kind: 'mcp',
    base_url: server.url,
    auth: { type: 'oauth2' },
    scopes: { 'tools:all': ['tool *'] },
  };
  await organisation.platform({ id: 'tools', manifest, secret: null });
  const connection = await organisation.connection('tools', { secret: null });
  await connectAtOnce(world, organisation.owner, connection);
  // The server reads client ids and secrets from the form only.
  const [client] = [...server.clients.values()];
  expect(client!.token_endpoint_auth_method).toBe('client_secret_post');
  const grants = { tools: { scopeList: ['tools:all'] } };
  const agent = await organisation.agent({ rules: ALLOW_ALL, grants });
  const call = () => agent.act(callOf('search_issues', 'tools:all'));
  const first = await call();
  const answer = { content: [{ type: 'text', text: `for ${client!.client_id}` }] };
  expect([first.status, first.body.data], first.text).toEqual([200, answer]);
  await outlive(world, connection);
  expect((await call()).body.data).toEqual(answer);
  expect(server.given).toEqual({ authorization_code: 1, refresh_token: 1 });
});
