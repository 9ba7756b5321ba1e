import { refuseUnreviewed } from '../../calls/restored-store.ts';
import { agentFacts, breakersOf } from '../../facts/facts.ts';
import { ALL_PLATFORMS } from '../../policy/facts.ts';
import { haltOf } from '../../policy/halt.ts';
import { toWirePermissions } from '../../policy/permissions.ts';
import { envelope, meta } from '../envelope.ts';
import { matchesEtag } from '../etag.ts';
import { ActionDenied } from '../governed-answers.ts';
import { haltedReply } from '../halted.ts';
import { EffectivePermissions } from '../permissions-answer.ts';
import { route } from '../route.ts';

/** GET /v1/agent/permissions (specification, Effective permissions). */
export const agentPermissions = route({
  method: 'GET',
  path: '/v1/agent/permissions',
  auth: 'agent',
  facts: ALL_PLATFORMS,
  limit: { name: 'permissions', perMinute: 600, per: 'agent' },
  capability: 'permissions.read',
  summary: 'What this agent can do now.',
  description:
    'Grants intersected with policy, guardrails, expiry, breakers and status, as they are at this moment. `version` is a hash of all that the agent can act on: send it as If-None-Match, and a 304 says that nothing changed.',
  headers: { 'If-None-Match': { description: 'The ETag of the last 200.', example: '"Gk3v0n2cVJ0"' } },
  answers: {
    200: {
      description: 'The effective permissions.',
      schema: EffectivePermissions,
      headers: ['ETag', 'Cache-Control'],
    },
    304: { description: 'They are what the ETag says.', headers: ['ETag', 'Cache-Control'] },
    403: { description: 'The agent is halted.', schema: ActionDenied, headers: ['Retry-After'] },
  },
  errors: ['rate_limited', 'store_restored'],
  handle: async (context) => {
    const { services, who, headers: asked } = context;
    refuseUnreviewed(who);
    const now = services.broker.clock();
    // A platform whose breaker is open is left out below; the others can be used.
    const halt = haltOf(agentFacts(who.agent), breakersOf(who.agent, now), now);
    if (halt) return haltedReply(halt, context, '/v1/agent/permissions');
    const permissions = await services.permissions(who);
    const headers = { ETag: `"${permissions.version}"`, 'Cache-Control': 'private, no-cache' };
    if (matchesEtag(asked['if-none-match'], permissions.version)) return { status: 304, headers };
    const data = {
      agent: { id: who.agent.id, name: who.agent.name, agent_id: who.agent.agent_id },
      platforms: permissions.platforms.map((platform) => ({
        ...toWirePermissions(platform, now),
        ...permissions.addresses.get(platform.platformId),
      })),
      version: permissions.version,
      ...(permissions.hosts && { egress: { hosts: permissions.hosts } }),
    };
    return {
      ...envelope(200, JSON.stringify(data), meta(services, who.agent.organisation_id, 'permissions.read')),
      headers,
    };
  },
});
