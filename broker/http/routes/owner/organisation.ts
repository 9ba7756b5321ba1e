/** The organisation's own settings. */

import { z } from 'zod';
import {
  changeOrganisation as change,
  type ReadOrganisation,
  readOrganisation,
} from '../../../admin/organisations/organisation.ts';
import { CallerIssuer, CallerIssuers } from '../../../people/caller-issuer.ts';
import { AutoSuspend } from '../../../policy/auto-suspend.ts';
import { PasskeyDeciders } from '../../../policy/passkey-deciders.ts';
import { Retention } from '../../../policy/retention.ts';
import { AgentsStoppedShown, agentsStoppedShown } from '../../agents-stopped.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { RestoredShown, restoredShown } from '../../restored.ts';
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
    caller_issuers: z.array(CallerIssuer).describe('whose assertions about the person behind a call are believed'),
    retention: Retention.describe('how long audit rows are kept before they are deleted'),
    passkey_deciders: PasskeyDeciders,
    agents_stopped: AgentsStoppedShown.nullable().describe('null: its agents are not stopped as a whole'),
    restored: RestoredShown.nullable().describe('the store was restored, and waits for a review: GET /owner/restored'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Organisation' });

const shown = (organisation: ReadOrganisation): z.output<typeof Organisation> => ({
  ...organisation,
  agents_stopped: organisation.agents_stopped && agentsStoppedShown(organisation.agents_stopped),
  restored: organisation.restored && restoredShown(organisation.restored),
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
    json(200, shown(await readOrganisation(broker.store.db, who.organisationId))),
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
  caller_issuers: CallerIssuers.optional(),
  retention: Retention.optional().describe('how long audit rows are kept before they are deleted; replaced as a whole'),
  passkey_deciders: PasskeyDeciders.optional(),
});

/** POST /owner/organisation: omitted members stay unchanged. */
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
  handle: async (context) => json(200, shown(await change(context.services, changingOwner(context), context.body))),
});
