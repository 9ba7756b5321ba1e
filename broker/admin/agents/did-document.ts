/** DID documents (specification, DID document; did:web, W3C DID Core 1.0): the public identity of an agent. */

import { type Broker, didOfAgent } from '../../broker.ts';
import type { EcPublicJwk } from '../../crypto/key-set.ts';
import { parsePublicKey, type RsaPublicJwk } from '../../crypto/public-key.ts';
import type { Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { findPublishedIdentity, type PublishedIdentity } from '../../store/published-identities.ts';

export type VerificationMethod = {
  id: string;
  type: 'JsonWebKey2020';
  controller: string;
  publicKeyJwk: (RsaPublicJwk | EcPublicJwk) & { alg: 'RS256' | 'ES256'; use: 'sig'; kid: string };
};

export type DidDocument = {
  '@context': string[];
  id: string;
  controller: string | string[];
  verificationMethod?: VerificationMethod[];
  authentication: string[];
  assertionMethod: string[];
  service: { id: string; type: string; serviceEndpoint: string }[];
};

/** `gone`: the identity is deactivated (DID Resolution). */
export type Resolution =
  | { kind: 'document'; document: DidDocument }
  | { kind: 'gone'; id: string }
  | { kind: 'not_found' };

/** The second context defines the type JsonWebKey2020. */
const CONTEXT = ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'];

type Issuer = Pick<Broker, 'baseUrl' | 'did'>;

/**
 * Resolves the DID of an `agt_` id (specification, DID resolution by agent status). The same `not_found` for agents that are unknown, have no key
 * yet, or belong to an organisation that does not publish, revoked ones of it included.
 */
export async function resolveAgent(
  broker: Pick<Broker, 'baseUrl' | 'did' | 'clock' | 'store'>,
  agentId: string,
): Promise<Resolution> {
  const agent = await findPublishedIdentity(broker.store.db, agentId);
  if (!agent) return { kind: 'not_found' };
  // An expired agent is treated as revoked: its calls are refused.
  const over = agent.expires_at !== null && agent.expires_at <= broker.clock();
  if (over || agent.status === 'revoked' || agent.status === 'deleted')
    return { kind: 'gone', id: didOfAgent(broker, agent.agent_id) };
  const document = agent.public_key_pem === null ? keyless(broker, agent) : withKey(broker, agent);
  return document ? { kind: 'document', document } : { kind: 'not_found' };
}

/** For a suspended agent the key is listed, but for no purpose. */
function withKey(broker: Issuer, agent: PublishedIdentity): DidDocument | undefined {
  const parsed = parsePublicKey(present(agent.public_key_pem, 'public key'));
  if (!parsed.ok) return undefined;
  const did = didOfAgent(broker, agent.agent_id);
  const method: VerificationMethod = {
    id: `${did}#key-${parsed.fingerprint}`,
    type: 'JsonWebKey2020',
    controller: did,
    publicKeyJwk: { ...parsed.jwk, alg: 'RS256', use: 'sig', kid: agent.agent_id },
  };
  const usable = agent.status === 'active' ? [method.id] : [];
  return {
    '@context': CONTEXT,
    id: did,
    controller: did,
    verificationMethod: [method],
    authentication: usable,
    assertionMethod: usable,
    service: servicesOf(did, broker.baseUrl),
  };
}

/**
 * The document of an agent without a key of its own, which is authenticated by the broker or by tokens of its workload: the broker is its controller,
 * and for a child its parent, too.
 */
function keyless(
  broker: Issuer,
  { agent_id, agent_type, parent_agent_id, workload_id }: PublishedIdentity,
): DidDocument | undefined {
  if (agent_type !== 'mcp_client' && agent_type !== 'child' && workload_id === null) return undefined;
  const did = didOfAgent(broker, agent_id);
  return {
    '@context': CONTEXT,
    id: did,
    controller: parent_agent_id === null ? broker.did : [broker.did, didOfAgent(broker, parent_agent_id)],
    authentication: [],
    assertionMethod: [],
    service: servicesOf(did, broker.baseUrl),
  };
}

/** Returns the broker's own document, `did:web:<host>`, with its root keys, including those that become active soon. Undefined without a key. */
export function rootDocument(
  { did, baseUrl, keys }: Pick<Broker, 'baseUrl' | 'did' | 'keys'>,
  now: Instant,
): DidDocument | undefined {
  const live = keys.set('root').entries.filter(({ retiredAt }) => retiredAt === null || now < retiredAt);
  if (live.length === 0) return undefined;
  const methods = live.map(
    ({ kid, publicJwk: { kty, crv, x, y } }): VerificationMethod => ({
      id: `${did}#key-${kid}`,
      type: 'JsonWebKey2020',
      controller: did,
      publicKeyJwk: { kty, crv, x, y, alg: 'ES256', use: 'sig', kid },
    }),
  );
  const usable = methods.map(({ id }) => id);
  return {
    '@context': CONTEXT,
    id: did,
    controller: did,
    verificationMethod: methods,
    authentication: usable,
    assertionMethod: usable,
    service: [
      ...servicesOf(did, baseUrl),
      {
        id: `${did}#receipt-keys`,
        type: 'JsonWebKeySet',
        serviceEndpoint: `${baseUrl}/.well-known/svc-receipt-keys.json`,
      },
    ],
  };
}

const servicesOf = (did: string, baseUrl: string): DidDocument['service'] => [
  { id: `${did}#authzen`, type: 'AuthZENPolicyDecisionPoint', serviceEndpoint: `${baseUrl}/v1/authzen/access` },
  { id: `${did}#trqp`, type: 'TRQPAuthorization', serviceEndpoint: `${baseUrl}/v1/trqp/authorization` },
  { id: `${did}#trqp-recognition`, type: 'TRQPRecognition', serviceEndpoint: `${baseUrl}/v1/trqp/recognition` },
];
