/** Agents that keep no key: the broker accepts tokens of their workload. Managed through the owner API. */
import type { WholeAgent } from '../../broker/console/answers.ts';
import { type ConnectionOptions, connectAsOwner, givenUrl, print } from '../connection.ts';
import { agentIdOf } from '../find-agent.ts';
import { lookUpTerms, type Terms, termsOf } from '../make-agent.ts';
import { openOwnerApi } from '../owner-api.ts';

type Options = ConnectionOptions & { json?: boolean };
export type WorkloadOptions = Options & { issuer: string; subject: string; jwksUri?: string };

const pathOf = (agentId: string) => `/owner/agents/${encodeURIComponent(agentId)}/workload` as const;

const meantBy = ({ issuer, subject, jwksUri }: WorkloadOptions) => ({
  issuer,
  subject,
  ...(jwksUri !== undefined && { jwks_uri: jwksUri }),
});

export async function setWorkload(given: string, options: WorkloadOptions): Promise<void> {
  const api = await openOwnerApi(options);
  const agentId = await agentIdOf(api, given);
  const workload = await api.ask('POST', pathOf(agentId), meantBy(options));
  const { agent_id } = await api.ask('GET', `/owner/agents/${encodeURIComponent(agentId)}`);
  print(options, workload, () => describeWorkload(agent_id, workload, givenUrl(options)));
}

export async function removeWorkload(given: string, options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const answer = await api.ask('DELETE', pathOf(await agentIdOf(api, given)));
  print(
    options,
    answer,
    () => 'Its next request with a token of the workload is refused; tokens that it signs are still accepted.',
  );
}

/** Creates an agent without a key. */
export async function createWithWorkload(name: string, options: WorkloadOptions & Terms): Promise<void> {
  const broker = await connectAsOwner(options);
  const grants = await lookUpTerms(broker, name, options);
  const asked = { name, ...termsOf({ policy: options.policy, grants }), workload: meantBy(options) };
  const made = await broker.ask('POST', '/owner/agents', asked);
  const { agent_id, owner_id, workload } = made as { agent_id: string; owner_id: string; workload: Workload };
  print(options, { name, agent_id, owner_id, workload }, () =>
    [`${name} (${agent_id}) has no key.`, describeWorkload(agent_id, workload, givenUrl(options))].join('\n'),
  );
}

type Workload = NonNullable<WholeAgent['workload']>;

/** Without a given address, the agent gets the broker's public one: the command itself may have connected over loopback. */
const describeWorkload = (
  agentId: string,
  { subject, issuer, audience }: Workload,
  url = new URL(audience).origin,
): string =>
  [
    `The broker accepts tokens of ${subject} of ${issuer} for it, issued for the audience`,
    `  ${audience}`,
    'Where it runs, with the file in which its platform keeps such a token:',
    `  AGENT_BROKER_URL=${url} AGENT_BROKER_AGENT_ID=${agentId} AGENT_BROKER_TOKEN_FILE=FILE`,
  ].join('\n');
