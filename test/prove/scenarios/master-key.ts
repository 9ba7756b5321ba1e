/** Rotating the master key of replicas with an operator's key file: both keys are set, and the process that re-encrypts is killed. */
import { dropPreviousKeys, rotateKeyFile } from '../../../broker/crypto/master-key-file.ts';
import { sealedWith } from '../../../broker/crypto/seal.ts';
import { openPostgres } from '../../../broker/store/postgres/postgres.ts';
import { listSealed, SEALED } from '../../../broker/store/sealed.ts';
import { runCommand } from '../../world/command.ts';
import { ALLOW_ALL } from '../../world/world.ts';
import type { Invariants } from '../invariants.ts';
import { kill, serving } from '../kill-broker.ts';
import { pause, type Scene } from '../scene.ts';
import { agentsOf } from './calls.ts';

/** Number of stored responses, which are sealed. */
const KEPT = 150;

export async function cutMasterKey(scene: Scene, invariants: Invariants, cuts: number): Promise<void> {
  const { random, ledger, spawn, world } = scene;
  const [agent] = await agentsOf(scene, { rules: ALLOW_ALL });
  const call = (item: string) =>
    agent!.act(
      { platform: 'demo', endpoint: `/items/${item}`, method: 'PATCH', scope: 'demo:write', data: {} },
      { 'idempotency-key': item },
    );
  for (let at = 0; at < KEPT; at++) invariants.answered(`k${at}`, await call(`k${at}`));
  const { keyFile } = world.running.broker.config;
  await world.running.stop();
  const { AGENT_BROKER_DATA = '', DATABASE_URL = '' } = scene.environment;
  const store = openPostgres(DATABASE_URL, { connections: 2, onError: () => {} });
  const keysInUse = async () => {
    const keys = new Set<string>();
    for (const column of SEALED)
      for (const { sealed } of await listSealed(store.db, column, '', 10_000)) keys.add(sealedWith(sealed));
    return keys.size;
  };
  const rotate = () => runCommand(['keys', 'rotate', 'master'], { cwd: AGENT_BROKER_DATA, env: { AGENT_BROKER_DATA } });
  let tookMs = 1_000;
  try {
    for (let cut = 0; cut < cuts; cut++) {
      rotateKeyFile(keyFile);
      const doomed = await serving(spawn());
      const rotating = rotate();
      await pause(random() * tookMs);
      await kill(doomed);
      await rotating;
      ledger.cuts++;
      const inUse = await keysInUse();
      ledger.find(
        inUse > 1
          ? 'kills before every data key was wrapped with the new key'
          : 'kills after every data key was wrapped with the new key',
      );
      const current = await serving(spawn());
      await invariants.check();
      const again = await call('k0');
      if (again.status !== 200 || again.headers.get('idempotency-replayed') !== 'true')
        throw new Error(`what was sealed before: ${again.status} ${again.text}`);
      const began = performance.now();
      const { code, stderr } = await rotate();
      if (code !== 0) throw new Error(`keys rotate master after a kill: ${stderr}`);
      tookMs = performance.now() - began;
      if ((await keysInUse()) !== 1) throw new Error(`${await keysInUse()} master keys are in use after a rotation`);
      ledger.check('a killed rotation of the master key is finished by the next one');
      current.signal('SIGTERM');
      await current.ended;
      dropPreviousKeys(keyFile);
    }
    const last = await serving(spawn());
    const kept = await call('k1');
    if (kept.headers.get('idempotency-replayed') !== 'true') throw new Error(`under the new key alone: ${kept.text}`);
    await invariants.checkAll();
    ledger.check('sealed values can be opened with the new key alone');
    last.signal('SIGTERM');
    await last.ended;
  } finally {
    await store.close();
  }
}
