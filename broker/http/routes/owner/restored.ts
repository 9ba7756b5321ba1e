/** A store that was restored from a backup, until an admin has reviewed it. */
import { z } from 'zod';
import { endReview, type Reviewed, reviewRestored } from '../../../admin/restored.ts';
import { text } from '../../../wire/action.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { RestoredShown, restoredShown } from '../../restored.ts';
import { route } from '../../route.ts';

const time = z.iso.datetime();

const ReviewShown = z
  .object({
    restored: RestoredShown.nullable().describe('null: no restored store waits for a review'),
    agents: z.array(
      z.object({
        agent_id: z.string(),
        name: z.string(),
        status: z.string(),
        owner: z.string().nullable().describe('address of its owner'),
        is_child: z.boolean(),
        grants: z.array(
          z.object({
            platform: z.string(),
            scopes: z.array(z.string()),
            require_approval: z.boolean(),
            expires_at: time.nullable(),
          }),
        ),
      }),
    ),
    owners: z.array(z.object({ id: z.guid(), email: z.string(), role: z.string() })),
    pipelines: z.array(
      z.object({ id: z.guid(), name: z.string(), role: z.string(), issuer: z.string(), subject: z.string() }),
    ),
    passkeys: z.array(
      z.object({
        id: z.guid(),
        owner: z.string().nullable(),
        device_name: z.string(),
        status: z.string(),
        created_at: time,
        last_used_at: time.nullable(),
        counter_unknown: z
          .boolean()
          .describe(
            'it counts its signatures and was not used since the restore: a copy that was used after the backup is not noticed at its first use',
          ),
      }),
    ),
    workloads: z.array(z.object({ id: z.guid(), agent_id: z.string(), issuer: z.string(), subject: z.string() })),
    static_keys: z.array(z.object({ id: z.guid(), agent_id: z.string(), label: z.string(), expires_at: time })),
    person_tokens: z.array(
      z.object({
        id: z.guid(),
        person_id: z.guid(),
        platform: z.string(),
        named_by: z.string(),
        standing: z.string(),
        status: z.string(),
        last_used_at: time.nullable(),
      }),
    ),
  })
  .meta({ id: 'RestoredReview' });

const at = (moment: number): string => new Date(moment).toISOString();
const orNull = (moment: number | null): string | null => (moment === null ? null : at(moment));

function shown(review: Reviewed): Omit<z.output<typeof ReviewShown>, 'restored'> {
  return {
    agents: review.agents.map(({ agent_id, name, status, parent_id, owner_email, grants }) => ({
      agent_id,
      name,
      status,
      owner: owner_email,
      is_child: parent_id !== null,
      grants: grants.map((grant) => ({
        platform: grant.platform_id,
        scopes: grant.scopes,
        require_approval: grant.require_approval === 1,
        expires_at: orNull(grant.expires_at),
      })),
    })),
    owners: review.owners,
    pipelines: review.pipelines,
    passkeys: review.passkeys.map(({ owner_email: owner, created_at, last_used_at, restored_counter, ...passkey }) => ({
      ...passkey,
      owner,
      created_at: at(created_at),
      last_used_at: orNull(last_used_at),
      counter_unknown: restored_counter !== null,
    })),
    workloads: review.workloads.map(({ agent_public_id: agent_id, ...one }) => ({ ...one, agent_id })),
    static_keys: review.static_keys.map(({ id, agent_public_id, label, expires_at }) => ({
      id,
      agent_id: agent_public_id,
      label,
      expires_at: at(expires_at),
    })),
    person_tokens: review.person_tokens.map(({ platform_id: platform, last_used_at, ...token }) => ({
      ...token,
      platform,
      last_used_at: orNull(last_used_at),
    })),
  };
}

/** GET /owner/restored */
export const ownerRestored = route({
  method: 'GET',
  path: '/owner/restored',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.restored.read',
  summary: "Everything that can act, for an admin's review after the store was restored from a backup.",
  answers: { 200: { description: 'While `restored` is not null, no call is made.', schema: ReviewShown } },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const { restored, review } = await reviewRestored(broker.store.db, who.organisationId, broker.clock());
    return json(200, { restored: restored ? restoredShown(restored) : null, ...shown(review) });
  },
});

/** POST /owner/restored/end */
export const endOwnerRestored = route({
  method: 'POST',
  path: '/owner/restored/end',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.restored.end',
  summary: 'Ends the review of a restored store: calls are possible from the next one on.',
  body: z.strictObject({
    restored_at: z.iso.datetime().describe('`at` of what was reviewed'),
    reason: text(500).optional().describe('on record'),
  }),
  answers: { 200: { description: 'Calls go on. This is what was restored.', schema: RestoredShown } },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { body } = context;
    const ended = { restoredAt: Date.parse(body.restored_at), detail: body.reason ?? null };
    return json(200, restoredShown(await endReview(context.services, changingOwner(context), ended)));
  },
});
