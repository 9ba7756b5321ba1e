import { agentFacts, breakersOf } from '../../calls/facts.ts';
import { haltOf } from '../../decision/halt.ts';
import { toWirePermissions } from '../../decision/permissions.ts';
import { ALL_PLATFORMS } from '../../store/facts.ts';
import { envelope, meta } from '../envelope.ts';
import { matchesEtag } from '../etag.ts';
import { haltedReply } from '../halted.ts';
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
  answers: { 200: 'The effective permissions.', 304: 'They are what the ETag says.' },
  errors: ['rate_limited'],
  handle: async (context) => {
    const { governor, who, request } = context;
    const now = governor.broker.clock();
    // A platform that failed too often stops the calls to it, and is left out below; the others can be used.
    const ofAgent = breakersOf(who.agent, now).filter(({ cause }) => cause !== 'breaker_upstream_failure');
    const halt = haltOf(agentFacts(who.agent), ofAgent, now);
    if (halt) return haltedReply(halt, context, '/v1/agent/permissions');
    const permissions = await governor.permissions(governor, who);
    const headers = { ETag: `"${permissions.version}"`, 'Cache-Control': 'private, no-cache' };
    if (matchesEtag(request.headers['if-none-match'], permissions.version)) return { status: 304, headers };
    const data = {
      agent: { id: who.agent.id, name: who.agent.name, agent_id: who.agent.agent_id },
      platforms: permissions.platforms.map((platform) => ({
        ...toWirePermissions(platform, now),
        ...permissions.servers.get(platform.platformId),
      })),
      version: permissions.version,
      egress: { hosts: permissions.hosts },
    };
    return { ...envelope(200, JSON.stringify(data), meta(governor, 'permissions.read')), headers };
  },
});
