/** A profile that changes while `agent-broker mcp` runs: the broker moves to another address. */
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { profileSend } from '../../mcp/stdio/profile-send.ts';
import { makeKeyPair } from '../world/agent.ts';
import { listenOnLoopback } from '../world/listen.ts';

test('a broker that is not there any more is looked for at the address that the profile has now', async () => {
  const privateKey = String(makeKeyPair().privateKey.export({ format: 'pem', type: 'pkcs8' }));
  const server = createServer((_request, response) => void response.end('{}'));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  const gone = createServer();
  const profile = {
    url: `http://127.0.0.1:${await listenOnLoopback(gone)}`,
    agentId: 'agt_1',
    ownerId: 'own_1',
    privateKey,
  };
  gone.close();
  const told: string[] = [];
  const send = profileSend(
    () => profile,
    (text) => void told.push(text),
  );
  const me = () => send({ method: 'GET', path: '/v1/agents/me' });
  await expect(me()).rejects.toMatchObject({ maybeSent: false });
  expect(told).toEqual([expect.stringContaining(`${profile.url} does not answer (ECONNREFUSED)`)]);
  profile.url = url;
  expect((await me()).status).toBe(200);
});
