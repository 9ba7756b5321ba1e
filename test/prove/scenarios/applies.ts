/** Governance files applied one after the other: a file is in force completely or not at all. */
import type { Invariants } from '../invariants.ts';
import { type Scene, type Work, workers } from '../scene.ts';
import { agentsOf } from './calls.ts';

const POLICIES = 12;

/** Every value in the file contains the version. */
const documentOf = (version: number): string =>
  JSON.stringify({
    policies: Object.fromEntries(
      Array.from({ length: POLICIES }, (_, at) => [
        `p${at}`,
        { rules: [{ name: `v${version}`, effect: 'allow', methods: ['GET'] }] },
      ]),
    ),
    guardrails: [{ name: `v${version}`, effect: 'deny', methods: ['DELETE'] }],
    agents: { applied: { policy: `p${version % POLICIES}`, grants: { demo: { scopes: ['demo:read'] } } } },
  });

export async function applies(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { ask, ledger, reader, organisation } = scene;
  const agents = await agentsOf(scene, { policy: await organisation.policy([{ effect: 'allow' }], 'p0') });
  let sent = 0;
  let acknowledged = 0;
  const work = workers(3, async (worker, turn) => {
    if (worker > 0) {
      const item = `a${worker}-${turn}`;
      const call = { platform: 'demo', endpoint: `/items/${item}`, method: 'GET', scope: 'demo:read' };
      invariants().answered(item, await agents[0]!.act(call));
      return false;
    }
    const version = ++sent;
    const answer = await ask('POST', '/owner/governance/apply', { text: documentOf(version), values: {} });
    if (answer.status !== 200) throw new Error(`an apply is answered ${answer.status} ${answer.text}`);
    acknowledged = version;
    return true;
  });
  return {
    ...work,
    check: async () => {
      const names = new Set<string>();
      const newest = await reader.rows(`select p.name, v.rules from policies p join policy_versions v
        on v.organisation_id = p.organisation_id and v.policy_id = p.id and v.version = p.version
        where p.name like 'p%' and p.name not like 'policy-%'`);
      for (const { rules } of newest) names.add(JSON.parse(rules)[0].name);
      const [guardrails] = await reader.rows(`select rules from guardrails_versions
        where organisation_id = '${organisation.id}' order by version desc limit 1`);
      if (guardrails) names.add(JSON.parse(guardrails.rules)[0].name);
      // Only the agents' initial policy exists.
      if (newest.length === 1 && acknowledged === 0 && sent > 0) return;
      const [name = ''] = names;
      const version = Number(name.slice(1));
      if (names.size !== 1 || newest.length !== POLICIES)
        throw new Error(`${newest.length} policies of the versions ${[...names].join()} are in force`);
      const [agent] = await reader.rows(`select p.name from agents a join policies p
        on p.organisation_id = a.organisation_id and p.id = a.policy_id where a.name = 'applied'`);
      if (agent?.name !== `p${version % POLICIES}`) throw new Error(`the agent is under ${agent?.name} in ${name}`);
      if (version < acknowledged || version > sent)
        throw new Error(`${name} is in force, v${acknowledged} was acknowledged, and v${sent} was sent last`);
      ledger.check('one complete file is in force: the last acknowledged one, or the interrupted one');
      ledger.find(version > acknowledged ? 'applied files without a response' : 'applied files as acknowledged');
    },
  };
}
