/** Rotates each of the broker's own keys in turn, while calls are made. */
import { readFileSync } from 'node:fs';
import { runFile } from '../../../broker/process/run-file.ts';
import { jsonPost, send } from '../../world/agent.ts';
import { ALLOW_ALL } from '../../world/world.ts';
import type { Invariants } from '../invariants.ts';
import { type Scene, type Work, workers } from '../scene.ts';
import { agentsOf } from './calls.ts';

const USES = ['master', 'evidence', 'log', 'master', 'session', 'secrets', 'issuing', 'root'];

export async function rotations(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { baseUrl, ledger, environment, random, store } = scene;
  // With replicas the master key has another procedure: each is restarted with both keys.
  const uses = USES.filter((use) => use !== 'master' || store === 'sqlite');
  const agents = await agentsOf(scene, { rules: ALLOW_ALL });
  let asked = Math.floor(random() * uses.length);
  let isRotating = () => {};
  const call = (item: string) =>
    agents[0]!.act({ platform: 'demo', endpoint: `/items/${item}`, method: 'GET', scope: 'demo:read' });
  const work = workers(4, async (worker, turn) => {
    if (worker > 0) {
      const item = `k${worker}-${turn}`;
      invariants().answered(item, await call(item));
      return false;
    }
    const use = uses[asked++ % uses.length]!;
    const { local_token } = JSON.parse(readFileSync(runFile(environment.AGENT_BROKER_DATA!), 'utf8'));
    isRotating();
    const answer = await send(
      `${baseUrl}/owner/keys/rotate`,
      jsonPost({ use }, { authorization: `Bearer ${local_token}` }),
    );
    // 401: the token is of a process that has ended.
    if (answer.status !== 200 && answer.status !== 401) throw new Error(`rotating ${use} is answered ${answer.text}`);
    if (answer.status === 200) ledger.find(`rotations of the ${use} key`);
    return answer.status === 200;
  });
  let checks = 0;
  return {
    ...work,
    moment: () => new Promise<void>((resolve) => (isRotating = resolve)),
    check: async () => {
      // The credential is decrypted with the current key.
      const answer = await call(`check-${checks++}`);
      if (answer.status !== 200) throw new Error(`a call after it is answered ${answer.status} ${answer.text}`);
      ledger.check('sealed values can be opened, and a call succeeds');
    },
  };
}
