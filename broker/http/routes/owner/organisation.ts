/** The organisation's own settings. */

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { AutoSuspend } from '../../../policy/auto-suspend.ts';
import { present } from '../../../policy/present.ts';
import { findOrganisation, updateOrganisation } from '../../../store/organisations.ts';
import type { OrganisationTable } from '../../../store/schema.ts';
import { ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const WEEK_SECONDS = 7 * 24 * 3600;

const Organisation = z
  .object({
    id: z.guid(),
    name: z.string(),
    approval_ttl_seconds: z.int(),
    require_user_verification: z.boolean(),
    publish_identity_documents: z.boolean(),
    auto_suspend: AutoSuspend.nullable().describe('when the broker suspends an agent by itself; null: never'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Organisation' });

const shown = (organisation: OrganisationTable): z.output<typeof Organisation> => ({
  id: organisation.id,
  name: organisation.name,
  approval_ttl_seconds: Math.floor(organisation.approval_ttl_ms / 1000),
  require_user_verification: organisation.require_user_verification === 1,
  publish_identity_documents: organisation.publish_identity_documents === 1,
  auto_suspend: organisation.auto_suspend === null ? null : JSON.parse(organisation.auto_suspend),
  created_at: new Date(organisation.created_at).toISOString(),
});

/** GET /owner/organisation */
export const ownerOrganisation = route({
  method: 'GET',
  path: '/owner/organisation',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.organisation.read',
  summary: 'The organisation and its settings.',
  answers: { 200: { description: 'The organisation.', schema: Organisation } },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, shown(present(await findOrganisation(broker.store.db, who.organisationId), 'organisation'))),
});

const Settings = z.strictObject({
  approval_ttl_seconds: z
    .number()
    .int()
    .min(60)
    .max(WEEK_SECONDS)
    .optional()
    .describe('how long a held call waits for its decision; those that wait already keep their time'),
  require_user_verification: z
    .boolean()
    .optional()
    .describe('whether a passkey decides only when its authenticator verified the person, by finger, face or PIN'),
  publish_identity_documents: z
    .boolean()
    .optional()
    .describe("whether anyone may read the DID documents of the organisation's agents"),
  auto_suspend: AutoSuspend.nullable()
    .optional()
    .describe('after how many refused calls an agent is suspended until an owner resumes it; null: never'),
});

/** POST /owner/organisation: what is left out stays as it is. */
export const changeOrganisation = route({
  method: 'POST',
  path: '/owner/organisation',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.organisation.change',
  summary: "Changes the organisation's settings.",
  body: Settings,
  answers: { 200: { description: 'The organisation as it is now.', schema: Organisation } },
  errors: ['invalid_request', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const before = present(await findOrganisation(services.broker.store.db, who.organisationId), 'organisation');
    const was = shown(before);
    const { approval_ttl_seconds: ttl = was.approval_ttl_seconds } = body;
    const { require_user_verification: verify = was.require_user_verification } = body;
    const { publish_identity_documents: publish = was.publish_identity_documents } = body;
    const { auto_suspend: rule = was.auto_suspend } = body;
    const changed = {
      ...(ttl !== was.approval_ttl_seconds && { approval_ttl_seconds: ttl }),
      ...(verify !== was.require_user_verification && { require_user_verification: verify }),
      ...(publish !== was.publish_identity_documents && { publish_identity_documents: publish }),
      ...(!isDeepStrictEqual(rule, was.auto_suspend) && { auto_suspend: rule }),
    };
    if (Object.keys(changed).length === 0) return json(200, was);
    const after = await ownerChange(context, { reason: 'organisation_changed' }, async (db, note) => {
      note(changed);
      await updateOrganisation(db, who.organisationId, {
        ...('approval_ttl_seconds' in changed && { approval_ttl_ms: ttl * 1000 }),
        ...('require_user_verification' in changed && { require_user_verification: verify ? 1 : 0 }),
        ...('publish_identity_documents' in changed && { publish_identity_documents: publish ? 1 : 0 }),
        ...('auto_suspend' in changed && { auto_suspend: rule && JSON.stringify(rule) }),
      });
      return present(await findOrganisation(db, who.organisationId), 'organisation');
    });
    return json(200, shown(after));
  },
});
