import { z } from 'zod';
import { keysInForce } from '../../../admin/agents/keys-in-force.ts';
import { rotateMasterKey } from '../../../master-key-rotation.ts';
import { rotateLogKey } from '../../../receipt-log/log-keys.ts';
import { DECRYPTION_GRACE_MS, rotateSecretKey } from '../../../secret-keys.ts';
import { Refusal } from '../../errors.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

/** GET /owner/keys: which key signs receipts, and when. The public keys are published elsewhere. */
export const ownerKeys = route({
  method: 'GET',
  path: '/owner/keys',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.keys.list',
  summary: 'The keys that sign receipts, since when, and the current keys for other purposes.',
  answers: {
    200: {
      description: 'Newest first, retired ones included.',
      schema: z.object({
        keys: z.array(
          z.object({
            kid: z.string(),
            signs_from: z.iso.datetime(),
            retired_at: z.iso.datetime().nullable().describe('null: it signs, or will'),
          }),
        ),
        in_force: z
          .array(
            z.object({
              use: z.enum(['evidence', 'log', 'session', 'secrets', 'master']),
              kid: z.string(),
              since: z.iso
                .datetime()
                .nullable()
                .describe('null: known only to the operator of the broker, as for the master key'),
            }),
          )
          .describe('the key of each use that the broker has now; a missing one is created when it is needed'),
      }),
    },
  },
  errors: [],
  handle: async ({ services: { broker } }) => {
    const { entries } = broker.keys.set('evidence');
    const keys = entries.map(({ kid, activatesAt, retiredAt }) => ({
      kid,
      signs_from: instant(activatesAt),
      retired_at: instant(retiredAt),
    }));
    return json(200, {
      keys,
      in_force: (await keysInForce(broker)).map((one) => ({ ...one, since: instant(one.since) })),
    });
  },
});

/** POST /owner/keys/rotate: rotates the broker's own keys. For the operator only, since they belong to no organisation. */
export const rotateKeys = route({
  method: 'POST',
  path: '/owner/keys/rotate',
  auth: 'local',
  capability: 'owner.keys.rotate',
  summary: 'Rotates a signing key, the master key, or the key that secrets are sealed to.',
  body: z.strictObject({ use: z.enum(['evidence', 'issuing', 'root', 'session', 'secrets', 'log', 'master']) }),
  answers: {
    200: {
      description: 'The new key, and from when it signs.',
      schema: z.union([
        z.object({ use: z.literal('master'), key_id: z.string(), rewrapped: z.int().describe('secrets') }),
        z.object({
          use: z.literal('secrets'),
          kid: z.string(),
          opens_until: z.iso.datetime().describe('until when what was sealed to the key before can be opened'),
        }),
        z.object({ use: z.literal('log'), kid: z.string().describe('signs from the next checkpoint on') }),
        z.object({
          use: z.enum(['evidence', 'issuing', 'root', 'session']),
          kid: z.string(),
          signs_from: z.iso.datetime(),
        }),
      ]),
    },
  },
  errors: ['invalid_request', 'conflict'],
  handle: async ({ services: { broker }, body }) => {
    if (body.use === 'master') {
      const rotated = await rotateMasterKey(broker);
      if (!rotated.ok) throw new Refusal('conflict', rotated.error);
      return json(200, { use: 'master', key_id: rotated.keyId, rewrapped: rotated.rewrapped });
    }
    if (body.use === 'secrets') {
      const now = broker.clock();
      const kid = await rotateSecretKey(broker, now);
      return json(200, { use: 'secrets', kid, opens_until: new Date(now + DECRYPTION_GRACE_MS).toISOString() });
    }
    if (body.use === 'log') return json(200, { use: 'log', kid: await rotateLogKey(broker) });
    const { kid, activatesAt } = await broker.keys.rotate(body.use, broker.clock());
    return json(200, { use: body.use, kid, signs_from: new Date(activatesAt).toISOString() });
  },
});
