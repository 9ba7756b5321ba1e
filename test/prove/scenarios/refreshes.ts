/** Tokens that expire after two seconds, so that calls refresh them all the time, at a server that rotates them. */

import { connectAtOnce } from '../../world/browser/connecting.ts';
import { startLyingServer } from '../../world/servers/lying-authorization-server.ts';
import type { Invariants } from '../invariants.ts';
import { pause, type Scene, type Work, workers } from '../scene.ts';

/** The shortest lifetime that a server may give: it is refreshed after 1.5 s. */
const TOKEN_SECONDS = 2;

export async function refreshes(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { world, organisation, random, ledger, reader } = scene;
  const server = await startLyingServer();
  // The address was not known when the world started.
  world.environment.AGENT_BROKER_ALLOW_PRIVATE += `,${server.address}`;
  scene.environment.AGENT_BROKER_ALLOW_PRIVATE = world.environment.AGENT_BROKER_ALLOW_PRIVATE!;
  await world.restart();
  server.token = { expires_in: TOKEN_SECONDS };
  world.upstream.answer = (request, response) => {
    const isGood = server.good.has((request.headers.authorization ?? '').slice('Bearer '.length));
    response.writeHead(isGood ? 200 : 401, { 'content-type': 'application/json' }).end('{}');
  };
  const manifest = {
    kind: 'rest',
    base_url: `${world.upstream.url}/v1`,
    auth: server.auth(),
    scopes: { 'demo:read': ['GET /items/*'] },
  };
  const made = await organisation.ask('POST', '/owner/governance/apply', {
    text: JSON.stringify({ platforms: { demo: manifest }, connections: { main: { platform: 'demo' } } }),
    values: {},
  });
  if (made.status !== 200) throw new Error(made.text);
  const { id } = (await organisation.ask('GET', '/owner/connections')).body.connections[0];
  await connectAtOnce(world, organisation.owner, id);
  const agent = await organisation.agent({
    rules: [{ effect: 'allow' }],
    grants: { demo: { scopeList: ['demo:read'] } },
  });
  /** By refresh token: how often it was sent. */
  const tries = new Map<string, number>();
  let cuts = 0;
  let isAsked = () => {};
  server.answers.set('/token', async (_request, response, body) => {
    const form = new URLSearchParams(body);
    const token = form.get('refresh_token');
    const isRefresh = form.get('grant_type') === 'refresh_token';
    if (isRefresh) {
      tries.set(token!, (tries.get(token!) ?? 0) + 1);
      isAsked();
      await pause(random() * 30);
    }
    const isGood = !isRefresh || token === server.given.refresh.at(-1);
    const answer = isGood ? server.rotate() : { error: 'invalid_grant' };
    await pause(random() * 30);
    response.writeHead(isGood ? 200 : 400, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  const call = (item: string) =>
    agent.act({ platform: 'demo', endpoint: `/items/${item}`, method: 'GET', scope: 'demo:read' });
  const work = workers(4, async (worker, turn) => {
    const item = `r${worker}-${turn}`;
    const answer = await call(item);
    invariants().answered(item, answer);
    await pause(random() * 50);
    return answer.status === 200;
  });
  return {
    ...work,
    // A refresh takes the server at most 60 ms.
    longestMs: 80,
    moment: () => new Promise<void>((resolve) => (isAsked = resolve)),
    afterKill: async () => {
      cuts++;
      const claimed = await reader.rows('select id from connections where refresh_claim is not null');
      ledger.find('interrupted refreshes', claimed.length);
    },
    check: async () => {
      const again = () => call(`c${cuts}-${Math.floor(random() * 1e9)}`);
      let answer = await again();
      const [connection] = await reader.rows('select status, refresh_claim from connections');
      // An access token is used until it expires, even if it could not be refreshed before.
      if (answer.status === 200 && connection.status === 'reauth_needed') {
        await pause(TOKEN_SECONDS * 1_000);
        answer = await again();
      }
      const isLost = answer.status === 409 && answer.body.error === 'platform_reauth_needed';
      if (answer.status !== 200 && !isLost)
        throw new Error(`a call after it is answered ${answer.status} ${answer.text}`);
      if (isLost !== (connection.status === 'reauth_needed'))
        throw new Error(`${answer.status}, and the connection is ${connection.status}`);
      // Once, and once more after each kill.
      for (const [token, times] of tries)
        if (times > 1 + cuts) throw new Error(`the refresh token ${token} was sent ${times} times`);
      const newest = server.given.refresh.at(-1)!;
      for (const [token] of tries) if (token !== newest) tries.delete(token);
      ledger.check('a connection works after an interrupted refresh, or reports that it must be authorised again');
      ledger.most('most refreshes of one connection', server.given.refresh.length);
      if (!isLost) return;
      ledger.find('connections whose tokens were lost, and that were authorised again');
      await connectAtOnce(world, organisation.owner, id);
    },
  };
}
