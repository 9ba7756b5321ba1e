/** How to verify the attestations that MCP servers receive (specification, Attestation on upstream MCP calls). */
import { z } from 'zod';
import {
  ATTESTATION_HEADER,
  ATTESTATION_META_KEY,
  ATTESTATION_TTL_SECONDS,
  ATTESTATION_TYPE,
} from '../../calls/attestation.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const Attestation = z
  .object({
    v: z.literal(1),
    issuer: z.string().describe('the `iss` of an attestation'),
    jwks_uri: z.url().describe('the evidence keys'),
    header: z.literal(ATTESTATION_HEADER),
    meta_key: z.literal(ATTESTATION_META_KEY),
    typ: z.literal(ATTESTATION_TYPE),
    alg: z.literal('ES256'),
    ttl_seconds: z.int(),
    audience: z.string().describe('a description of `aud`'),
    docs: z.url(),
  })
  .meta({ id: 'AttestationDiscovery' });

/** GET /.well-known/svc-attestation */
export const attestation = route({
  method: 'GET',
  path: '/.well-known/svc-attestation',
  auth: 'none',
  anyOrigin: true,
  capability: 'attestation.discovery',
  summary: 'How an MCP server verifies who is calling it.',
  answers: {
    200: {
      description: 'Where attestations are found, and by which keys they are signed.',
      schema: Attestation,
      headers: ['Cache-Control'],
    },
  },
  errors: [],
  handle: async ({ services: { broker } }) =>
    json(
      200,
      {
        v: 1,
        issuer: broker.did,
        jwks_uri: `${broker.baseUrl}/.well-known/svc-receipt-keys.json`,
        header: ATTESTATION_HEADER,
        meta_key: ATTESTATION_META_KEY,
        typ: ATTESTATION_TYPE,
        alg: 'ES256',
        ttl_seconds: ATTESTATION_TTL_SECONDS,
        audience: "the MCP server's own address, as the broker calls it",
        docs: `${broker.baseUrl}/docs/platforms#attestation`,
      },
      { 'Cache-Control': 'public, max-age=3600' },
    ),
});
