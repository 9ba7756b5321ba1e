/** Public identity documents (specification, DID document; Discovery and health). */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { type DidDocument, resolveAgent, rootDocument } from '../../admin/agents/did-document.ts';
import { AGENT_ID_PATTERN } from '../../crypto/ids.ts';
import { Refusal } from '../errors.ts';
import { matchesEtag } from '../etag.ts';
import type { Reply } from '../reply.ts';
import { type Context, route } from '../route.ts';

const TYPE = 'application/did+json';
const CACHING = { 'Cache-Control': 'public, max-age=60' };
const CACHED = ['ETag', 'Cache-Control'] as const;
const CONDITIONAL = { 'If-None-Match': { description: 'The ETag of the last 200.' } };
const UNCHANGED = { description: 'It is what the ETag says.', headers: CACHED };

const Method = z.object({
  id: z.string(),
  type: z.literal('JsonWebKey2020'),
  controller: z.string(),
  publicKeyJwk: z.record(z.string(), z.string()),
});

const Document = z
  .object({
    '@context': z.array(z.string()),
    id: z.string(),
    controller: z.union([z.string(), z.array(z.string())]),
    verificationMethod: z.array(Method).optional().describe('absent for an identity that the broker authenticates'),
    authentication: z.array(z.string()).describe('empty while suspended'),
    assertionMethod: z.array(z.string()).describe('empty while suspended'),
    service: z.array(z.object({ id: z.string(), type: z.string(), serviceEndpoint: z.url() })),
  })
  .meta({ id: 'DidDocument' });

const Deactivated = z.object({ deactivated: z.literal(true), id: z.string() });

function documentReply(document: DidDocument, { request }: Context): Reply {
  const body = JSON.stringify(document);
  const version = hash('sha256', body, 'base64url');
  const headers = { ...CACHING, ETag: `"${version}"` };
  if (matchesEtag(request.headers['if-none-match'], version)) return { status: 304, headers };
  return { status: 200, type: TYPE, body, headers };
}

/** GET /.well-known/did.json */
export const rootDid = route({
  method: 'GET',
  path: '/.well-known/did.json',
  auth: 'none',
  anyOrigin: true,
  limit: { name: 'did-root', perMinute: 30, per: 'address' },
  capability: 'did.root',
  headers: CONDITIONAL,
  summary: "The broker's own DID document.",
  answers: {
    200: { description: 'The document, with the root key.', schema: Document, type: TYPE, headers: CACHED },
    304: UNCHANGED,
  },
  errors: ['not_found', 'rate_limited'],
  handle: async (context) => {
    const { broker } = context.services;
    const document = rootDocument(broker, broker.clock());
    if (!document) throw new Refusal('not_found', 'This broker has no root key, so it has no DID document.');
    return documentReply(document, context as Context);
  },
});

/** GET /agents/{agentId}/did.json: the same 404 for unknown agents and for unpublished ones. */
export const agentDid = route({
  method: 'GET',
  path: '/agents/{agentId}/did.json',
  auth: 'none',
  anyOrigin: true,
  limit: { name: 'did', perMinute: 30, per: 'address' },
  capability: 'did.agent',
  headers: CONDITIONAL,
  summary: "An agent's DID document, where its organisation publishes them.",
  params: { agentId: z.string().regex(AGENT_ID_PATTERN).describe('its agent id') },
  answers: {
    200: { description: 'The document.', schema: Document, type: TYPE, headers: CACHED },
    304: UNCHANGED,
    410: { description: 'The agent is revoked.', schema: Deactivated, type: TYPE, headers: ['Cache-Control'] },
  },
  errors: ['not_found', 'rate_limited'],
  handle: async (context) => {
    const { params, services } = context;
    const id = params.agentId;
    const found = AGENT_ID_PATTERN.test(id) ? await resolveAgent(services.broker, id) : undefined;
    if (found?.kind === 'document') return documentReply(found.document, context as Context);
    if (found?.kind === 'gone')
      return { status: 410, type: TYPE, body: JSON.stringify({ deactivated: true, id: found.id }), headers: CACHING };
    throw new Refusal('not_found', 'No DID document is published at this address.');
  },
});
