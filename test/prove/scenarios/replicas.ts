/** Two replicas on one PostgreSQL, one of which is killed while the other works: the leases and calls of the dead one are taken over. */
import { freePort } from '../../../bench/free-port.ts';
import { TestAgent } from '../../world/agent.ts';
import type { BrokerProcess } from '../../world/broker-process.ts';
import { newFolder } from '../../world/stores.ts';
import type { Invariants } from '../invariants.ts';
import { kill, serving } from '../kill-broker.ts';
import { pause, type Scene, withLog, workers } from '../scene.ts';
import { agentsOf } from './calls.ts';

const MAX_WORK_MS = 1_500;
/** The lease of the dead process, and the same time for taking it over. */
const TAKEN_OVER_WITHIN_MS = 8_000;

/** Returns the addresses of two replicas, and their differences in environment; the first has the address of the world's broker. */
export async function twoPlaces({ world, baseUrl }: Scene): Promise<{ url: string; more: Record<string, string> }[]> {
  const port = await freePort();
  const other = {
    PORT: `${port}`,
    BASE_URL: baseUrl,
    AGENT_BROKER_DATA: newFolder(),
    AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
  };
  return [
    { url: baseUrl, more: {} },
    { url: `http://localhost:${port}`, more: other },
  ];
}

/**
 * Kills one of the two replicas at random, `cuts` times, during calls to both, which write to one receipt log. The first one has the address of the
 * world's broker, which the invariants query.
 */
export async function cutReplicas(scene: Scene, invariants: Invariants, cuts: number): Promise<void> {
  const { random, ledger, spawn, reader, world } = scene;
  const agents = await agentsOf(scene);
  await world.running.stop();
  const places = await twoPlaces(scene);
  const start = async (at: number): Promise<BrokerProcess> => await serving(spawn(places[at]!.more));
  const running = [await start(0), await start(1)];
  const work = workers(8, async (worker, turn) => {
    const item = `p${worker}-${turn}`;
    const isRead = random() < 0.5;
    const agent = new TestAgent({ ...agents[worker % 2]!, baseUrl: places[worker % 2]!.url });
    const answer = await agent.act({
      platform: 'demo',
      endpoint: `/items/${item}`,
      method: isRead ? 'GET' : 'PATCH',
      scope: isRead ? 'demo:read' : 'demo:write',
      ...(!isRead && { data: {} }),
    });
    invariants.answered(item, answer);
    return answer.status === 200;
  });
  const leaseOf = async () => (await reader.rows(`select * from leases where name = 'receipt log'`))[0];
  for (let cut = 0; cut < cuts; cut++) {
    work.resume();
    await pause(random() * MAX_WORK_MS);
    const at = random() < 0.5 ? 0 : 1;
    const before = await leaseOf();
    await kill(running[at]!);
    ledger.cuts++;
    const began = performance.now();
    // The other replica works on, and so does the log.
    for (;;) {
      const now = await leaseOf();
      if (now && (now.holder !== before?.holder || now.until > before.until)) {
        ledger.find(now.holder === before?.holder ? 'kills of the replica without the lease' : 'leases taken over');
        break;
      }
      if (performance.now() - began > TAKEN_OVER_WITHIN_MS) throw new Error('nobody takes over the lease of the log');
      await pause(50);
    }
    ledger.check('the lease of a dead process is taken over');
    ledger.most('longest until the lease was taken over, ms', performance.now() - began);
    await work.pause();
    running[at] = await start(at);
    try {
      await invariants.check();
    } catch (error) {
      throw withLog(scene, cut + 1, error);
    }
  }
  await invariants.checkAll();
  ledger.find('operations', work.progress());
  for (const child of running) {
    child.signal('SIGTERM');
    await child.ended;
  }
}
