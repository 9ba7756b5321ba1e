/** Schemas shared by registrations and invites. */
import { z } from 'zod';
import { mergeScopes } from '../admin/agents/new-agent.ts';
import { text } from '../wire/action.ts';

export const REGISTRATION_STATUSES = ['pending', 'approved', 'rejected', 'expired'] as const;

const MAX_PLATFORMS = 20;
const MAX_SCOPES = 100;

/** Control characters and line breaks are refused; other special characters are made visible when the name is shown. */
export const AgentName = text(100)
  .min(1)
  .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'must not contain control characters or line breaks')
  .regex(/^(?!\s)[\s\S]*(?<!\s)$/u, 'must not begin or end with a space')
  .describe('what people call the agent');

export const ScopesOnPlatform = z.strictObject({
  platformId: text(64).min(1),
  scopes: z.array(text(256).min(1)).min(1).max(MAX_SCOPES),
});

/** Scopes on platforms, as a registration requests them; entries of the same platform are merged. */
export const ScopesOnPlatforms = z.array(ScopesOnPlatform).max(MAX_PLATFORMS).transform(mergeScopes);

/** The body of POST /v1/register. Unknown members are ignored (RFC 7591 section 2). */
export const Registering = z.object({
  owner_id: z
    .guid()
    .transform((id) => id.toLowerCase())
    .describe('the uuid of the owner who is to answer for the agent'),
  agent_name: AgentName,
  agent_description: text(1000).optional().describe('its purpose; shown to the person who decides'),
  requested_scopes: ScopesOnPlatforms,
});

/** The form of scopes in answers. */
export const ScopesOn = z.array(z.object({ platformId: z.string(), scopes: z.array(z.string()) }));

export const Token = z.string().describe('the registration_token');

/** For addresses that contain a token: a link followed from such a page must not send the address along. */
export const PRIVATE = { 'Referrer-Policy': 'no-referrer' };
