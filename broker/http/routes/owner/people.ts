/** Tokens that people gave, for owners: counts and states, never identities. */
import { z } from 'zod';
import { confirmPerson, endPeople, listPeople } from '../../../admin/people/people.ts';
import { peopleByPlatform } from '../../../admin/people/per-person.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { PerPersonFields } from '../../../platforms/manifest-fields.ts';
import { CallerIdentity } from '../../../wire/action.ts';
import { changingOwner } from '../../owner-change.ts';
import { cursorInTime, cursorParameter, pageSize } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const Given = z
  .object({
    id: z.guid(),
    person_id: z.guid().describe('random: the same for one person, and contains no data about them'),
    platform_id: z.string(),
    connection_id: z.guid(),
    named_by: z.string().describe('who asserts the identity of the person: an issuer of assertions, or a source'),
    verified: z.boolean().describe('whether an issuer does; else it is the word of a source'),
    agent: z.string().nullable().describe('the agent that asked'),
    state: z
      .enum(['unconfirmed', 'active', 'reauth_needed'])
      .describe('`unconfirmed`: not used until an owner confirms it'),
    account: z.string().nullable().describe('of `unconfirmed`: the account at the platform, as far as that says'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'PersonTokens' });

const OfPlatform = z
  .object({
    platform_id: z.string(),
    name: z.string(),
    per_person: PerPersonFields.nullable().describe('the setting; null: there is none'),
    unconfirmed: z.int(),
    active: z.int(),
    reauth_needed: z.int().describe('the platform no longer accepts them: the person has to consent again'),
    connections: z.array(z.object({ id: z.guid(), label: z.string() })).describe('for which they were given'),
  })
  .meta({ id: 'PeopleOfPlatform' });

/** GET /owner/people */
export const ownerPeople = route({
  method: 'GET',
  path: '/owner/people',
  auth: 'owner',
  role: 'approver',
  capability: 'owner.people.list',
  summary: 'The tokens that people gave, on platforms that hold one per person; oldest first.',
  query: z.object({
    state: z
      .enum(['unconfirmed', 'given'], 'one of unconfirmed, given')
      .optional()
      .describe('only those that wait for an owner, or only the others'),
    platform: z.string().max(255).optional().describe('only those of this platform'),
    cursor: cursorParameter.optional(),
    limit: pageSize(200, 50),
  }),
  answers: {
    200: {
      description: 'A page of those of the organisation, and how many there are for each platform.',
      schema: z.object({
        tokens: z.array(Given),
        next: z.string().nullable().describe('for `cursor`; null: this is the last page'),
        platforms: z.array(OfPlatform),
      }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query: { state, platform: platformId, cursor: after, limit } }) => {
    const standing = state === 'given' ? ('kept' as const) : state;
    const { tokens, end } = await listPeople(broker, who.organisationId, { standing, platformId, after, limit });
    return json(200, {
      platforms: await peopleByPlatform(broker, who.organisationId),
      tokens: tokens.map((one) => ({ ...one, created_at: new Date(one.created_at).toISOString() })),
      next: end ? cursorInTime(end) : null,
    });
  },
});

const caller = CallerIdentity.describe('the person, as agents name them; compared, and never stored');

/** POST /owner/people/tokens/{id}/confirm */
export const confirmOwnerPerson = route({
  method: 'POST',
  path: '/owner/people/tokens/{id}/confirm',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.people.confirm',
  summary: 'Confirms the account of a person whose identity only a source asserts, so that it is used.',
  params: { id: z.guid().describe('the id of the tokens') },
  body: z.strictObject({ caller: caller.optional() }),
  bodyOptional: true,
  answers: { 200: { description: 'Confirmed.', schema: z.object({ confirmed: z.literal(true) }) } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    await confirmPerson(services, changingOwner(context), { id: storedUuid(params.id), caller: body.caller });
    return json(200, { confirmed: true });
  },
});

const Ending = z.union(
  [
    z.strictObject({ id: z.guid().describe('the id of the tokens') }),
    z.strictObject({ person_id: z.guid() }),
    z.strictObject({ caller }),
    z.strictObject({ connection_id: z.guid().describe('of everybody who gave tokens for this connection') }),
    z.strictObject({ all: z.literal(true).describe('of everybody, everywhere') }),
  ],
  { error: 'send exactly one of id, person_id, caller and connection_id, or all: true' },
);

/** POST /owner/people/end */
export const endOwnerPeople = route({
  method: 'POST',
  path: '/owner/people/end',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.people.end',
  summary: 'Ends the tokens of a person, of a connection, or all, and revokes them if the server supports that.',
  body: Ending,
  answers: {
    200: { description: 'How many.', schema: z.object({ ended: z.int(), revoked: z.int() }) },
  },
  errors: ['invalid_request', 'audit_unavailable'],
  handle: async (context) => {
    const { body } = context;
    const filter = {
      ...('id' in body && { id: storedUuid(body.id) }),
      ...('person_id' in body && { personId: storedUuid(body.person_id) }),
      ...('connection_id' in body && { connectionId: storedUuid(body.connection_id) }),
      ...('caller' in body && { caller: body.caller }),
    };
    return json(200, await endPeople(context.services, changingOwner(context), filter));
  },
});
