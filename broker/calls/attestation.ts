/** Attestations: to an MCP server, who is calling it (specification, Attestation on upstream MCP calls). */
import { type Broker, didOfAgent } from '../broker.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { signCompact } from '../crypto/jws.ts';
import type { Call } from './call.ts';

export const ATTESTATION_TYPE = 'svc-attest+jwt';
export const ATTESTATION_HEADER = 'X-Svc-Attestation';
export const ATTESTATION_META_KEY = 'ai.svc/attestation';
/** How long one is good for, in seconds. */
export const ATTESTATION_TTL_SECONDS = 120;

/**
 * A compact JWS under the evidence key set, for one request to one server. The `jti` of a tool call is its audit row, with `.2` after it where the same
 * call is sent a second time; every other request has one of its own. So a server is shown none twice.
 *
 * @param server the server's own address: the audience, so that one server cannot show it to another (MC-01)
 * @param tool the tool that is called; undefined: another request, such as for the list of tools
 * @param turn which request of the tool call it is, from 1
 * @param scopes the scopes that the agent holds on the platform now
 */
export function attest(
  broker: Pick<Broker, 'did' | 'keys' | 'clock'>,
  { who, action, record, standing }: Pick<Call, 'who' | 'action' | 'record' | 'standing'>,
  { server, tool, turn, scopes }: { server: string; tool: string | undefined; turn: number; scopes: readonly string[] },
): string {
  const { agent } = who;
  const now = broker.clock();
  const iat = Math.floor(now / 1000);
  const approval = approvalIn(record);
  return signCompact(
    broker.keys.signer('evidence', now),
    { typ: ATTESTATION_TYPE },
    {
      iss: broker.did,
      sub: didOfAgent(broker, agent.agent_id),
      aud: server,
      iat,
      exp: iat + ATTESTATION_TTL_SECONDS,
      jti: tool === undefined ? uuidv7(now) : turn === 1 ? record.auditId : `${record.auditId}.${turn}`,
      agent: agent.agent_id,
      ...(agent.parent_agent_id && {
        parent: { agent: agent.parent_agent_id, did: didOfAgent(broker, agent.parent_agent_id) },
      }),
      scopes: [...scopes].sort(),
      scope: action.scope,
      ...(tool !== undefined && { tool }),
      session_id: record.sessionId,
      trace_id: record.traceId ?? record.correlationId,
      ...(approval && { approval }),
      // As of an approval, not whose it was.
      ...(standing && { standing_approval: standing }),
    },
  );
}

/** The human decision, as far as it is a stranger's business: that there was one, when and how; not whose. */
function approvalIn({ approval }: Call['record']) {
  if (!approval) return undefined;
  const { decided_at, how } = approval.provenance;
  return { approval_id: approval.id, decided_at, how };
}
