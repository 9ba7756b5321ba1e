/**
 * One attacker, with a key, an MCP client and wrong bearers, calls two replicas at every entry point concurrently, as fast as they answer. The
 * calls of another agent succeed. Counts and ratios are compared, not times, since the machine is shared.
 */

import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import { ALLOWANCE } from '../../broker/runtime/window-counts.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { type Answer, send, type TestAgent } from '../world/agent.ts';
import { browserOf } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { type Replica, startReplica } from '../world/replica.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { sized } from '../world/runner/thorough.ts';
import { startGitHost } from '../world/servers/git-host.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { CANARY, DEMO_SCOPES, READ, startWorld, type World } from '../world/world.ts';

/** Lowers all limits, so that they are reached soon; the neighbour stays below its own. */
const FACTOR = 0.1;
/** Per minute, as documented. */
const LIMITS = { actions: 600, mcp: 600, authzen: 1_200, git: 600, proxy: 1_200, 'refused bearers': 300 };
/** Concurrent connections per entry point and replica, without pauses. */
const AT_ONCE = 2;
/** Calls of the neighbour, one after the other. */
const CALLS = sized(10, 20);
const LARGE_BYTES = 256 * 1024;

// The attack uses all of the machine.
vi.setConfig({ testTimeout: scaledTimeout(60_000) });

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

describe.runIf(STORES.includes('postgres'))(`one attacker on two replicas${postgresNote}`, () => {
  let world: World;
  let attacker: TestAgent;
  let neighbour: TestAgent;
  let replicas: Replica[];
  let mcpToken: string;
  /** Ends the requests that the platform keeps waiting. */
  let answerSlow: () => void;
  beforeAll(async () => {
    const [host, upstream] = [await startGitHost({ secret: CANARY }), await startUpstream()];
    host.repository('acme/app');
    world = await startWorld('postgres', {
      AGENT_BROKER_ALLOW_PRIVATE: `${host.address},${upstream.address}`,
      AGENT_BROKER_LIMIT_FACTOR: `${FACTOR}`,
    });
    const organisation = await world.organisation();
    const slow: (() => void)[] = [];
    answerSlow = () => {
      for (const end of slow.splice(0)) end();
    };
    upstream.answer = ({ url }, response) => {
      response.setHeader('content-type', 'application/json');
      if (url?.endsWith('/slow')) {
        const end = () => response.writableEnded || response.end('{}');
        slow.push(end);
        // Before the broker times out, as could happen on a busy machine.
        setTimeout(end, 15_000).unref();
      } else response.end('{"items":[]}');
    };
    await organisation.platform({ manifest: { base_url: `${upstream.url}/v1` } });
    await organisation.platform({
      id: 'codehost',
      manifest: { ...github, base_url: host.url, git_base_url: host.url },
    });
    const grants = {
      demo: { scopeList: Object.keys(DEMO_SCOPES) },
      codehost: { scopeList: ['codehost:contents.read'] },
    };
    attacker = await organisation.agent({ rules: [{ effect: 'allow' }], grants });
    neighbour = await organisation.agent({ rules: [{ effect: 'allow' }], grants });
    replicas = await Promise.all([startReplica(world, { behind: true }), startReplica(world, { behind: true })]);
    const client = new OAuthClient(world);
    const decision = { name: 'attacker', grants: [{ platformId: 'demo', scopes: ['demo:read'] }] };
    mcpToken = (await client.tokens(browserOf(world, organisation.owner), {}, decision)).access_token;
    return () => {
      answerSlow();
      for (const { process } of replicas) process.signal('SIGKILL');
    };
  });

  const evaluation = (by: TestAgent) => ({
    subject: { type: 'agent', id: by.agentId },
    action: { name: 'demo:read' },
    resource: { type: 'platform', id: 'demo' },
  });
  const entryPoints: [limit: keyof typeof LIMITS, ask: (by: TestAgent) => Promise<Answer>][] = [
    ['actions', (by) => by.act(READ)],
    ['actions', (by) => by.act({ ...READ, endpoint: '/items/slow' })],
    [
      'actions',
      (by) => by.act({ ...READ, method: 'POST', scope: 'demo:write', data: { text: 'x'.repeat(LARGE_BYTES) } }),
    ],
    ['mcp', (by) => callMcp(by.baseUrl, mcpToken)],
    ['authzen', (by) => by.post('/access/v1/evaluation', evaluation(by))],
    [
      'git',
      (by) => {
        const authorization = `Basic ${Buffer.from(`x:${by.token()}`).toString('base64')}`;
        return send(`${by.baseUrl}/git/acme/app/info/refs?service=git-upload-pack`, { headers: { authorization } });
      },
    ],
    ['proxy', (by) => rawClient(() => by)('GET', '/proxy/demo-main/items')],
    [
      'refused bearers',
      (by) => {
        const authorization = `Bearer ${by.token({ agent_id: crypto.randomUUID() })}`;
        return by.get('/v1/agents/me', { authorization }, '127.0.0.5');
      },
    ],
  ];

  /** Makes the neighbour's calls, to each replica in turn, all of which must succeed. Returns how long each took. */
  async function callsOfNeighbour(times: number): Promise<number[]> {
    const took: number[] = [];
    for (let call = 0; call < times; call++) {
      const began = performance.now();
      const answer = await replicas[call % 2]!.asks(neighbour).act(READ);
      took.push(performance.now() - began);
      expect(answer.status, answer.text).toBe(200);
    }
    return took;
  }

  test('MR-05 every call of another agent succeeds, and the attacker gets no more than its limits, once over both replicas', async () => {
    await callsOfNeighbour(6);
    const quiet = median(await callsOfNeighbour(CALLS));
    let isOver = false;
    onTestFinished(() => {
      isOver = true;
    });
    const answers = new Map<keyof typeof LIMITS, Answer[]>();
    const connections = entryPoints.flatMap(([limit, ask]) =>
      replicas.flatMap((replica) =>
        Array.from({ length: AT_ONCE }, async () => {
          while (!isOver) {
            const answer = await ask(replica.asks(attacker));
            answers.set(limit, [...(answers.get(limit) ?? []), answer]);
          }
        }),
      ),
    );
    const attack = Promise.all(connections);
    attack.catch(() => {});
    await expect.poll(() => answers.size, { timeout: 30_000 }).toBe(Object.keys(LIMITS).length);
    const before = new Map([...answers].map(([entryPoint, { length }]) => [entryPoint, length]));
    const busy = median(await callsOfNeighbour(CALLS));
    const during = [...answers].map(([entryPoint, { length }]) => length - (before.get(entryPoint) ?? 0));
    isOver = true;
    const answering = setInterval(answerSlow, 20);
    await attack;
    clearInterval(answering);

    for (const [limit, all] of answers) {
      const [refused, granted] = [
        all.filter(({ status }) => status === 429),
        all.filter(({ status }) => status !== 429),
      ];
      const isBearer = limit === 'refused bearers';
      // Bearers that were being verified when the limit was exceeded count as well.
      const more = isBearer ? AT_ONCE * replicas.length : 0;
      const most = LIMITS[limit] * FACTOR * (1 + replicas.length * ALLOWANCE) + more;
      expect(granted.length, limit).toBeLessThanOrEqual(most);
      expect(new Set(granted.map(({ status }) => status)), limit).toEqual(new Set([isBearer ? 401 : 200]));
      for (const { headers } of refused) expect(headers.get('retry-after'), limit).toMatch(/^[1-9]\d?$/);
    }
    // A connection of the attacker, whose refusals cost next to nothing, does not get many times as many answers.
    expect(Math.max(...during) / (AT_ONCE * replicas.length)).toBeLessThan(25 * CALLS);
    // And no call waits for more than a few turns of all connections.
    expect(busy / quiet).toBeLessThan(4 * connections.length);
    for (const replica of replicas) expect((await replica.asks(neighbour).act(READ)).status).toBe(200);
  });
});
