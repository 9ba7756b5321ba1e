/** Requests of a run while its broker does not answer. */
import { createServer, type Server } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { newPlaceholder } from '../../mcp/sidecar/placeholder.ts';
import { startSidecar } from '../../mcp/sidecar/sidecar.ts';
import { listenOnLoopback } from '../world/listen.ts';

/** Starts a sidecar whose broker is this server, and returns a request to it. `status`: the fixed status of the platform's errors. */
async function sidecarOf(server: Server, status?: number) {
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  const placeholder = newPlaceholder();
  const sidecar = await startSidecar({
    broker: { url, token: () => 'of-the-agent' },
    errors: new Map([['slack', { body: { ok: false, error: '{detail}' }, status }]]),
    ...{ placeholder, connections: ['slack', 'crm'], codehost: undefined, socket: undefined },
  });
  onTestFinished(() => sidecar.close());
  return async (connection: string) => {
    const answer = await fetch(`${sidecar.url}/proxy/${connection}/x`, { headers: { 'x-api-key': placeholder } });
    const { headers } = answer;
    return [answer.status, headers.get('retry-after'), headers.get('x-should-retry'), await answer.text()];
  };
}

test('a request that was not sent, because the broker is being restarted, may be repeated after a second', async () => {
  const server = createServer();
  const ask = await sidecarOf(server, 200);
  server.close();
  const unsent = expect.stringMatching(/did not answer \(ECONNREFUSED\)\. Nothing was sent\./);
  expect(await ask('crm')).toEqual([502, '1', null, unsent]);
  // Slack's client repeats no request that was answered with a 200.
  expect(await ask('slack')).toEqual([502, '1', null, unsent]);
});

test('a request that may have been made is not to be repeated', async () => {
  const server = createServer(({ socket }) => void socket.destroy());
  onTestFinished(() => void server.close());
  const ask = await sidecarOf(server, 200);
  const unknown = expect.stringContaining('may have been made');
  expect(await ask('crm')).toEqual([502, null, 'false', unknown]);
  expect(await ask('slack')).toEqual([200, null, 'false', unknown]);
});
