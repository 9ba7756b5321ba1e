/** Held calls, most of which owners approve. */
import type { Invariants } from '../invariants.ts';
import { pause, type Scene, type Work, workers } from '../scene.ts';
import { agentsOf, BODY } from './calls.ts';

export async function approvals(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { random, ledger, world, ask, reader } = scene;
  const agents = await agentsOf(scene);
  const hold = async (worker: number, turn: number): Promise<boolean> => {
    const item = `h${worker}-${turn}`;
    const call = { platform: 'demo', endpoint: `/items/${item}`, method: 'POST', scope: 'demo:write', data: BODY };
    invariants().answered(item, await agents[worker % agents.length]!.act(call));
    await pause(random() * 30);
    return false;
  };
  const decide = async (): Promise<boolean> => {
    let approved = false;
    const list = await ask('GET', '/owner/approvals?status=pending&limit=20');
    for (const { approval_id } of list.body.approvals ?? []) {
      const verb = random() < 0.85 ? 'approve' : 'deny';
      const { status } = await ask('POST', `/owner/approvals/${approval_id}/${verb}`, {});
      // 409: another request was faster, or is in progress.
      if (status !== 200 && status !== 409) throw new Error(`deciding is answered ${status}`);
      if (status === 200) ledger.find(`answers to ${verb}`);
      if (status === 200 && verb === 'approve') approved = true;
    }
    await pause(5);
    return approved;
  };
  const work = workers(6, (worker, turn) => (worker < 3 ? hold(worker, turn) : decide()));
  return {
    ...work,
    moment: async () => {
      const before = world.upstream.seen.length;
      while (world.upstream.seen.length === before) await pause(1);
    },
    check: async () => {
      const counts = await reader.rows('select exec_state, count(*) as count from approvals group by exec_state');
      for (const { exec_state, count } of counts)
        if (exec_state !== 'none') ledger.most(`most approvals of one store that are ${exec_state}`, Number(count));
    },
  };
}
