/** An owner's own passkeys. */
import { z } from 'zod';
import { listPasskeys, type ReadPasskey, removePasskey, renamePasskey } from '../../../approvals/passkeys/passkeys.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { Refusal } from '../../errors.ts';
import { changingOwner } from '../../owner-change.ts';
import { Assertion, expectReauthenticated, REAUTHENTICATION_ERRORS } from '../../reauthenticated.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';
import { DeviceName, MAX_PASSKEY_BODY_BYTES } from '../../webauthn-json.ts';

const Passkey = z
  .object({
    id: z.guid(),
    credential_id: z.string(),
    device_name: z.string(),
    created_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().nullable(),
    synced: z.boolean(),
    discoverable: z.boolean().nullable().describe('whether it can sign its owner in; null: not known'),
    status: z.enum(['active', 'disabled']),
    transports: z.array(z.string()),
    aaguid: z.string(),
  })
  .meta({ id: 'Passkey' });

const shown = (passkey: ReadPasskey) => ({
  id: passkey.id,
  credential_id: passkey.credential_id,
  device_name: passkey.device_name,
  created_at: new Date(passkey.created_at).toISOString(),
  last_used_at: instant(passkey.last_used_at),
  synced: passkey.synced === 1,
  discoverable: passkey.discoverable === null ? null : passkey.discoverable === 1,
  status: passkey.status,
  transports: passkey.transports,
  aaguid: passkey.aaguid,
});

const unknown = () => new Refusal('not_found', 'You have no such passkey.');

/** GET /owner/passkeys */
export const ownerPasskeys = route({
  method: 'GET',
  path: '/owner/passkeys',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.passkeys.list',
  summary: "The owner's own passkeys.",
  answers: {
    200: {
      description: 'All of them, oldest first; disabled ones too.',
      schema: z.object({ passkeys: z.array(Passkey) }),
    },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, { passkeys: (await listPasskeys(broker, who.owner)).map(shown) }),
});

/** POST /owner/passkeys/{id}/rename */
export const renameOwnerPasskey = route({
  method: 'POST',
  path: '/owner/passkeys/{id}/rename',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.passkeys.rename',
  summary: "Gives one of the owner's passkeys another name.",
  body: z.strictObject({ device_name: DeviceName }),
  answers: { 200: { description: 'The passkey as it is now.', schema: Passkey } },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const renamed = await renamePasskey(services, changingOwner(context), storedUuid(params.id), body.device_name);
    if (!renamed) throw unknown();
    return json(200, shown(renamed));
  },
});

/** DELETE /owner/passkeys/{id}: in force immediately; earlier decisions made with it stand. */
export const removeOwnerPasskey = route({
  method: 'DELETE',
  path: '/owner/passkeys/{id}',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.passkeys.remove',
  summary: "Removes one of the owner's passkeys.",
  description:
    'By an owner who signed in within the last 10 minutes; or with an `assertion` by a passkey that the owner has (purpose `remove-passkey`).',
  body: z.strictObject({ assertion: Assertion }),
  bodyOptional: true,
  maxBodyBytes: MAX_PASSKEY_BODY_BYTES,
  answers: { 200: { description: 'It is gone.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) } },
  errors: ['invalid_request', 'not_found', ...REAUTHENTICATION_ERRORS],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    const { assertion } = context.body;
    await expectReauthenticated(context, 'Removing a passkey', {
      assertion,
      subject: { purpose: 'remove-passkey', id },
    });
    if (!(await removePasskey(context.services, changingOwner(context), id))) throw unknown();
    return json(200, { id, removed: true });
  },
});
