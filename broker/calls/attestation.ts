/** Attestations: signed statements to an MCP server about who is calling it (specification, Attestation on upstream MCP calls). */
import { type Broker, didOfAgent } from '../broker.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { signCompact } from '../crypto/jws.ts';
import type { Call } from './call.ts';

export const ATTESTATION_TYPE = 'svc-attest+jwt';
export const ATTESTATION_HEADER = 'X-Svc-Attestation';
export const ATTESTATION_META_KEY = 'ai.svc/attestation';
/** Lifetime of an attestation, in seconds. */
export const ATTESTATION_TTL_SECONDS = 120;

/**
 * Creates an attestation: a compact JWS signed with the evidence key, for one request to one server. The `jti` of a tool call is its audit
 * id, with `.2` appended when the same call is sent a second time; every other request gets a fresh `jti`. So a server never receives the
 * same `jti` twice.
 *
 * @param server the server's own address: the audience, so that a server cannot replay it to another one (MC-01)
 * @param tool the tool that is called; undefined for other requests, such as listing tools
 * @param turn the number of the request within the tool call, from 1
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
      // As with `approval`: when and how it was given, not by whom.
      ...(standing && { standing_approval: standing }),
    },
  );
}

/** The part of the approval that an MCP server may see: when and how it was decided, not by whom. */
function approvalIn({ approval }: Call['record']) {
  if (!approval) return undefined;
  const { decided_at, how } = approval.provenance;
  return { approval_id: approval.id, decided_at, how };
}
