/** Public documents (specification, Discovery and health). */
import { z } from 'zod';
import { readBuild } from '../../build.ts';
import { Refusal } from '../errors.ts';
import { JwkSet } from '../jwk-set.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const build = readBuild();

/** GET /version */
export const version = route({
  method: 'GET',
  path: '/version',
  auth: 'none',
  capability: 'version',
  summary: 'Which build this is.',
  answers: {
    200: {
      description: 'Version, commit and time of the build.',
      schema: z.object({
        service: z.literal('proxy'),
        version: z.string(),
        sha: z.string().describe('the commit, or `unknown`'),
        builtAt: z.iso.datetime().nullable(),
      }),
      headers: ['Cache-Control'],
    },
  },
  errors: [],
  handle: async () =>
    json(
      200,
      { service: 'proxy', version: build.version, sha: build.sha, builtAt: build.builtAt },
      { 'Cache-Control': 'no-store' },
    ),
});

/** GET /v1/oauth/jwks.json: the keys of bearers that the broker issues (RFC 7517). */
export const issuingKeys = route({
  method: 'GET',
  path: '/v1/oauth/jwks.json',
  auth: 'none',
  anyOrigin: true,
  capability: 'oauth.jwks',
  summary: 'Keys of the bearer tokens that the broker issues.',
  answers: { 200: { description: 'A JWK Set.', schema: JwkSet, headers: ['Cache-Control'] } },
  errors: [],
  handle: async ({ services }) => ({
    status: 200,
    body: services.broker.keys.published('issuing'),
    headers: { 'Cache-Control': 'public, max-age=300' },
  }),
});

/** GET /.well-known/svc-receipt-keys.json: the evidence keys, active and retired. Never the issuing keys. */
export const receiptKeys = route({
  method: 'GET',
  path: '/.well-known/svc-receipt-keys.json',
  auth: 'none',
  anyOrigin: true,
  capability: 'receipts.keys',
  summary: 'Keys that verify receipts.',
  answers: { 200: { description: 'A JWK Set.', schema: JwkSet, headers: ['Cache-Control'] } },
  errors: ['not_found'],
  handle: async ({ services: { broker } }) => {
    if (broker.keys.set('evidence').entries.length === 0)
      throw new Refusal('not_found', 'This broker has no evidence key, so there is nothing to verify receipts with.');
    const headers = { 'Cache-Control': 'public, max-age=3600' };
    return { status: 200, body: broker.keys.published('evidence'), headers };
  },
});
