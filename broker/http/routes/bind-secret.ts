/** Receives sealed secrets from senders who need no other access (specification, Registration and binding). */
import { z } from 'zod';
import { openSentSecret, SecretRefused, storeSecret } from '../../admin/connections/bind-secret.ts';
import { checkCredential } from '../../admin/connections/connection-credential.ts';
import type { Broker } from '../../broker.ts';
import { SealError } from '../../crypto/seal.ts';
import { publishedSecretKeys } from '../../secret-keys.ts';
import { text } from '../../wire/action.ts';
import { Refusal } from '../errors.ts';
import { JwkSet } from '../jwk-set.ts';
import { Credential } from '../owned/connection.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

export const SECRET_KEYS_PATH = '/.well-known/svc-secret-keys.json';

/** GET /.well-known/svc-secret-keys.json: the key to which secrets are sealed. */
export const secretKeys = route({
  method: 'GET',
  path: SECRET_KEYS_PATH,
  auth: 'none',
  anyOrigin: true,
  limit: { name: 'secret-keys', perMinute: 60, per: 'address' },
  capability: 'secrets.keys',
  summary: 'The key to seal secrets to.',
  answers: {
    200: { description: 'A JWK Set with one key for ECDH-ES.', schema: JwkSet, headers: ['Cache-Control'] },
  },
  errors: ['rate_limited', 'credential_unreadable'],
  handle: async ({ services: { broker } }) => ({
    status: 200,
    body: await publishedSecretKeys(broker, broker.clock()).catch((error) => refuseUnreadable(broker, error)),
    headers: { 'Cache-Control': 'public, max-age=300' },
  }),
});

/** Throws Refusal when the key was altered in the store; rethrows other errors. */
function refuseUnreadable({ log }: Pick<Broker, 'log'>, error: unknown): never {
  if (!(error instanceof SealError)) throw error;
  log.error({ err: error, security: true }, 'the key that secrets are sealed to cannot be opened');
  throw new Refusal(
    'credential_unreadable',
    'The key for sealed secrets cannot be decrypted; nothing was stored. The operator of the broker has to publish another one.',
  );
}

const MAX_BODY_BYTES = 64 * 1024;

/** The same answer to every invalid request, so that it does not reveal what exists. */
const REFUSED =
  'encrypted_secret: this is not a secret that was authorised for this agent and platform and has not come yet. Seal {"authorization": …, "secret": …} to the key that is published now, once for each authorisation.';

/** POST /v1/bind-secret */
export const bindSecret = route({
  method: 'POST',
  path: '/v1/bind-secret',
  auth: 'none',
  limit: { name: 'bind', perMinute: 30, per: 'address' },
  capability: 'secrets.bind',
  summary: 'Takes a sealed secret that an owner authorised, for one agent and one platform.',
  body: z.strictObject({
    agent_id: text(64).min(1).describe('its uuid, or its agent id (`agt_…`)'),
    platform_id: text(64).min(1),
    encrypted_secret: text(MAX_BODY_BYTES)
      .min(1)
      .describe('a compact JWE (ECDH-ES, A256GCM) of {"authorization": …, "secret": …}'),
  }),
  secretBody: true,
  maxBodyBytes: MAX_BODY_BYTES,
  answers: {
    200: {
      description: 'The agent’s calls use the secret from now on.',
      schema: z.object({ status: z.literal('bound'), agent_id: z.string(), platform_id: z.string() }),
    },
  },
  errors: ['invalid_request', 'rate_limited', 'audit_unavailable', 'credential_unreadable'],
  handle: async ({ services, body, correlationId }) => {
    const sent = { agentId: body.agent_id, platformId: body.platform_id, sealed: body.encrypted_secret };
    try {
      const opened = await openSentSecret(services, sent);
      // The sender holds an open authorisation, so the answer may say what is wrong with the secret. The authorisation stays unused.
      const secret = Credential.safeParse(opened.secret.reveal());
      if (!secret.success) throw new Refusal('invalid_request', `secret: ${secret.error.issues[0]?.message}.`);
      checkCredential(opened.context.manifest, secret.data);
      await storeSecret(services, opened, correlationId);
      return json(200, { status: 'bound', agent_id: opened.context.agent.agent_id, platform_id: body.platform_id });
    } catch (error) {
      if (error instanceof SecretRefused) throw new Refusal('invalid_request', REFUSED);
      refuseUnreadable(services.broker, error);
    }
  },
});
