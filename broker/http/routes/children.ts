/** POST /v1/agents/children (specification, Child identity). */
import { z } from 'zod';
import type { ChildGrantRequest } from '../../admin/agents/child-grants.ts';
import { CHILD_TTL, issueChild } from '../../admin/agents/children.ts';
import { GrantTerms } from '../../config-file/terms.ts';
import { agentFacts, breakersOf } from '../../facts/facts.ts';
import { ALL_PLATFORMS, REF_CHANGES } from '../../policy/facts.ts';
import { haltOf } from '../../policy/halt.ts';
import { recipientEntryKind } from '../../policy/recipients.ts';
import { text } from '../../wire/action.ts';
import { credentialEnded } from '../current-principal.ts';
import { Refusal } from '../errors.ts';
import { AgentName } from '../registration-request.ts';
import { json } from '../reply.ts';
import { type Context, type MalformedBody, route } from '../route.ts';

/** Limits of one request (specification, Limits). */
const MAX_GRANTS = 25;
const MAX_SCOPES = 500;

/** An absent member means the parent's value; an empty list allows no recipient, or nothing. */
const Limits = z.strictObject({
  recipients: z
    .array(
      text(320)
        .min(1)
        .refine(
          (entry) => recipientEntryKind(entry) !== undefined,
          'is no address, no domain as "@acme.example", and no id',
        ),
    )
    .max(1000)
    .optional()
    .describe('who may receive what is sent; each within what the parent may'),
  repos: GrantTerms.shape.repos.describe('`owner/name` or `owner/*`, each within what the parent may'),
  allow_repo_creation: z.boolean().optional().describe('only where the parent may'),
  refs: GrantTerms.shape.refs.describe('branches and tags that it may write, each within what the parent may'),
  ref_changes: GrantTerms.shape.ref_changes.describe('how it may change them, as far as the parent may'),
});

const Wanted = z.strictObject({
  platform: text(64).min(1),
  scopes: z.array(text(256).min(1)).min(1).max(MAX_SCOPES).describe('those that the parent does not hold are dropped'),
  // What is no UUID is no connection that the parent has, as one of another organisation.
  connection_id: text(64)
    .min(1)
    .transform((id) => id.toLowerCase())
    .nullish()
    .describe("left out: the one that the parent's own calls would use"),
  constraints: Limits.nullish().describe("left out: the parent's"),
});

const Body = z.strictObject({
  name: AgentName.nullish(),
  ttl_seconds: z
    .int()
    .min(1)
    .max(CHILD_TTL.most)
    .nullish()
    .describe(`how long it lives; ${CHILD_TTL.default} when left out, and never longer than its parent`),
  grants: z.array(Wanted).min(1).max(MAX_GRANTS),
});

const Issued = z.object({
  child_agent_id: z.string(),
  bearer_token: z.string().describe("the child's bearer; it is shown this once"),
  expires_at: z.iso.datetime(),
  granted: z.array(
    z.object({
      platform: z.string(),
      scopes: z.array(z.string()),
      connection_id: z.guid().nullable().describe('null: the default connection of the platform'),
      constraints: z.object({
        recipients: z.array(z.string()).optional(),
        repos: z.array(z.string()).optional(),
        allow_repo_creation: z.boolean().optional(),
        refs: z.array(z.string()).optional(),
        ref_changes: z.array(z.enum(REF_CHANGES)).optional(),
      }),
      require_approval: z.boolean().describe('whether every call waits for a person'),
      expires_at: z.iso.datetime().nullable().describe('when the grant ends, if before the child'),
    }),
  ),
});

export const issueChildren = route({
  method: 'POST',
  path: '/v1/agents/children',
  auth: 'agent',
  facts: ALL_PLATFORMS,
  limit: { name: 'children', perMinute: 120, per: 'agent' },
  capability: 'agents.children',
  summary: 'Makes a child identity that can do at most what this agent can.',
  example: {
    name: 'reader',
    ttl_seconds: 600,
    grants: [{ platform: 'codehost', scopes: ['codehost:issues.read'] }],
  },
  body: Body,
  answers: { 201: { description: 'The child, and the only copy of its bearer.', schema: Issued } },
  errors: [
    'invalid_request',
    'invalid_grants',
    'invalid_constraints',
    'no_scopes_after_attenuation',
    'child_constraints_looser_than_parent',
    'not_on_plan',
    'agent_not_active',
    'forbidden',
    'too_many_children',
    'rate_limited',
    'audit_unavailable',
    'as_signing_unavailable',
  ],
  tooLargeIsMalformed: true,
  onMalformed: async (context, problem) => {
    refuseCaller(context);
    throw malformed(problem);
  },
  handle: async (context) => {
    refuseCaller(context);
    const { services, who, body, correlationId } = context;
    const wish = {
      name: body.name ?? undefined,
      ttlSeconds: body.ttl_seconds ?? CHILD_TTL.default,
      grants: body.grants.map(wantedGrant),
    };
    const issued = await issueChild(services, who, wish, correlationId);
    switch (issued.kind) {
      case 'no_key':
        throw new Refusal(
          'as_signing_unavailable',
          'The broker has no key to sign a bearer token with. No child was created.',
        );
      case 'parent_not_active':
        throw new Refusal('agent_not_active', 'This agent was stopped in the meantime. Ask its owner.');
      case 'credential_ended':
        throw credentialEnded();
      case 'too_many':
        throw new Refusal(
          'too_many_children',
          `This agent already has ${issued.limit} live children. Wait until one expires, or ask an owner to revoke one.`,
        );
      case 'issued': {
        const { agentId, token, expiresAt, granted } = issued.child;
        return json(201, {
          child_agent_id: agentId,
          bearer_token: token.reveal(),
          expires_at: new Date(expiresAt).toISOString(),
          granted: granted.map((grant) => ({
            platform: grant.platformId,
            scopes: grant.scopes,
            connection_id: grant.connectionId,
            constraints: grant.constraints,
            require_approval: grant.requireApproval,
            expires_at: grant.expiresAt === null ? null : new Date(grant.expiresAt).toISOString(),
          })),
        });
      }
    }
  },
});

/** Refuses agents that may not have children, whatever they request. @throws Refusal */
function refuseCaller({ services: { broker }, who }: Pick<Context<'agent'>, 'services' | 'who'>): void {
  const { agent } = who;
  const now = broker.clock();
  const halt = haltOf(agentFacts(agent), breakersOf(agent, now), now);
  if (halt !== undefined || agent.status !== 'active')
    throw new Refusal(
      'agent_not_active',
      halt?.instructions ?? `This agent is ${agent.status}: an owner has to finish setting it up.`,
      {
        extra: halt ? { halt } : {},
        ...(halt?.retry_after_seconds != null && { headers: { 'Retry-After': String(halt.retry_after_seconds) } }),
      },
    );
  if (agent.agent_type === 'child')
    throw new Refusal('forbidden', 'A child identity cannot have children. Let its parent create another child.');
}

/** Chooses the error code by the location of the first problem. */
function malformed({ code, detail, issues = [] }: MalformedBody): Refusal {
  const path = issues[0]?.path ?? [];
  if (path[0] !== 'grants') return new Refusal(code, detail);
  return new Refusal(path[2] === 'constraints' ? 'invalid_constraints' : 'invalid_grants', detail);
}

function wantedGrant({ platform, scopes, connection_id, constraints }: z.output<typeof Wanted>): ChildGrantRequest {
  const { recipients, repos, allow_repo_creation, refs, ref_changes } = constraints ?? {};
  return {
    platform,
    scopes,
    ...(connection_id != null && { connectionId: connection_id }),
    constraints: {
      ...(recipients && { recipients }),
      ...(repos && { repos }),
      ...(allow_repo_creation && { allow_repo_creation }),
      ...(refs && { refs }),
      ...(ref_changes && { ref_changes }),
    },
  };
}
