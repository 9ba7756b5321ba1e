/** Members that an error has beyond those of every error envelope (specification, Error shapes), by code. */
import { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import { AgentHalt } from './governed-answers.ts';
import type { Route } from './route.ts';

const KEY_REFUSED = {
  platform: z.string().optional().describe('the platform of the call'),
  consent_requested: z.literal(false).optional().describe('no access request waits because of this'),
  message: z.string().optional().describe('the same as `detail`'),
};

const ERROR_MEMBERS: Partial<Record<ErrorCode, z.ZodRawShape>> = {
  upstream_unreachable: {
    code: z.string().describe('what failed'),
    outcome: z
      .enum(['not_sent', 'unknown'])
      .describe('`unknown`: the platform may have acted, so check it before the call is repeated'),
  },
  idempotency_key_reused: KEY_REFUSED,
  idempotency_in_progress: KEY_REFUSED,
  idempotency_outcome_unknown: KEY_REFUSED,
  agent_not_active: { halt: AgentHalt.optional().describe('only while halted') },
  already_decided: {
    status: z.string().optional().describe('what was decided'),
    decided_by_email: z.string().optional().describe('by whom'),
  },
  request_changed: { request_hash: z.string().optional().describe('of the request as it is now') },
};

const PROBLEMS = {
  problems: z.array(z.string()).optional().describe('what is wrong in the file or the rules, and where'),
};

/** Of the routes for owners, in addition. */
const OWNER_ERROR_MEMBERS: typeof ERROR_MEMBERS = {
  reauthentication_required: {
    max_age_seconds: z.int().optional().describe('how old the sign-in may be for this change'),
  },
  conflict: {
    reason: z.string().optional().describe('of a corrected call that a rule denies: the reason of the decision'),
    version: z.int().optional().describe('of rules that were changed meanwhile: the version that is in force'),
  },
  forbidden: {
    signed_in_as: z.string().optional().describe('the owner of the session, where `X-Svc-Owner` names another one'),
  },
  invalid_governance: PROBLEMS,
  invalid_request: PROBLEMS,
};

/** Returns the members of an error of this route. */
export const membersOf = ({ auth }: Pick<Route, 'auth'>, code: ErrorCode): z.ZodRawShape => ({
  ...ERROR_MEMBERS[code],
  ...(auth.includes('owner') && OWNER_ERROR_MEMBERS[code]),
});

/** Returns the members of the errors of one status. Each is optional, because another of the codes may lack it. */
export const membersOfAll = (route: Pick<Route, 'auth'>, codes: readonly ErrorCode[]): z.ZodObject =>
  z.object(Object.assign({}, ...codes.map((code) => membersOf(route, code)))).partial();
