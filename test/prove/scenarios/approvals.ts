/** Held calls, most of which owners approve; those of one agent need the approval of two of them. */
import { mintOwnerSession } from '../../../broker/auth/owner-session.ts';
import { jsonRequest, send } from '../../world/agent.ts';
import type { Invariants } from '../invariants.ts';
import { pause, type Scene, type Work, workers } from '../scene.ts';
import { agentsOf, BODY } from './calls.ts';

export async function approvals(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { random, ledger, world, organisation, baseUrl, reader } = scene;
  const forTwo = [{ effect: 'allow' }, { name: 'two', effect: 'require_approval', methods: ['POST'], approvers: 2 }];
  const agents = [...(await agentsOf(scene)), await organisation.agent({ name: 'three', rules: forTwo })];
  const people = [organisation.owner, await organisation.addOwner('approver')];
  const sessions = people.map((owner) => mintOwnerSession(world.running.broker, owner).token);
  const askBy = (worker: number, method: string, path: string, body?: unknown) =>
    send(baseUrl + path, jsonRequest(method, body, { authorization: `Bearer ${sessions[worker % sessions.length]}` }));
  const hold = async (worker: number, turn: number): Promise<boolean> => {
    const item = `h${worker}-${turn}`;
    const call = { platform: 'demo', endpoint: `/items/${item}`, method: 'POST', scope: 'demo:write', data: BODY };
    invariants().answered(item, await agents[worker % agents.length]!.act(call));
    await pause(random() * 30);
    return false;
  };
  const decide = async (worker: number): Promise<boolean> => {
    let approved = false;
    const list = await askBy(worker, 'GET', '/owner/approvals?status=pending&limit=20');
    for (const { approval_id } of list.body.approvals ?? []) {
      const verb = random() < 0.85 ? 'approve' : 'deny';
      const { status } = await askBy(worker, 'POST', `/owner/approvals/${approval_id}/${verb}`, {});
      // 409: another request was faster, or is in progress.
      if (status !== 200 && status !== 409) throw new Error(`deciding is answered ${status}`);
      if (status === 200) ledger.find(`answers to ${verb}`);
      if (status === 200 && verb === 'approve') approved = true;
    }
    await pause(5);
    return approved;
  };
  const work = workers(6, (worker, turn) => (worker < 3 ? hold(worker, turn) : decide(worker)));
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
