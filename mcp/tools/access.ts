/** list_permissions and request_access. */
import type { DenyReason, Halt } from '../client/action.ts';
import type { AccessAsk } from '../client/agent-client.ts';
import type { BrokerError } from '../client/broker-error.ts';
import type { Permissions } from '../client/permissions.ts';
import type { AccessStatus } from '../client/read-answers.ts';
import { type ToolAnswer, toolAnswer } from './answer.ts';
import { errorAnswer, lostAccessAnswer, outcomeAnswer, unreadAccessAnswer } from './outcome-answer.ts';
import type { ToolRequest } from './peer.ts';
import type { ToolHost } from './tool-host.ts';
import { waitFor } from './waiting.ts';

export async function listPermissions(host: ToolHost): Promise<ToolAnswer> {
  const found = await host.permissions.now();
  if (!found.ok) return haltedOr(found.error);
  const { agent, platforms, egress } = found.value;
  return toolAnswer({
    status: 'permissions',
    permissions: { agent, platforms, ...(egress && { egress }) },
    ...(platforms.length === 0 && { next: 'You hold no scopes now. Ask for one with request_access.' }),
  });
}

/** Throws the reason of the request's signal when it is aborted. */
export async function askForAccess(host: ToolHost, request: ToolRequest, asked: AccessAsk): Promise<ToolAnswer> {
  const endsAt = Date.now() + host.waitMs;
  const what = asked.scope === undefined ? asked.platform : `${asked.scope} on ${asked.platform}`;
  const opened = await host.client.requestAccess(asked, request.signal);
  if (!opened.ok) {
    host.permissions.refreshSoon();
    return opened.error.code === 'conflict' ? granted(what, opened.error.message) : refused(opened.error);
  }
  const { requestToken } = opened.value;
  const found = await waitFor(
    (waitSeconds) => host.client.accessRequest(requestToken, { waitSeconds, signal: request.signal }),
    ({ status }: AccessStatus) => status !== 'pending',
    { request, endsAt, news: `Waiting for an owner to decide on ${what}` },
  );
  if (!found.ok) return unreadAccessAnswer(found.error);
  const { status, note } = found.value;
  if (status === 'approved') {
    const held = await host.permissions.now();
    return held.ok && !holds(held.value, asked)
      ? toolAnswer({
          status: 'refused',
          code: 'scope_not_granted',
          detail: `An owner approved the request, and granted other scopes than ${what}.`,
          note,
          next: 'See list_permissions for what you hold now, and go on with that, or tell the person.',
        })
      : granted(what, `An owner granted ${what}.`, note);
  }
  if (status === 'pending')
    return toolAnswer({
      status: 'pending_approval',
      detail: `The owners were asked for ${what} and have not decided yet.`,
      next: 'Tell the person. Call request_access again with the same platform and scope to see whether it was decided: it is the same request.',
    });
  return toolAnswer({
    status,
    code: status,
    detail: status === 'denied' ? `An owner denied ${what}.` : `Nobody decided on ${what} in time.`,
    note,
    next: `Continue without it, or tell the person. Do not ask for the same again unless they say so.`,
  });
}

/** Whether the permissions include the requested ones. */
export const holds = ({ platforms }: Permissions, { platform, scope }: AccessAsk): boolean =>
  platforms.some(
    ({ platformId, scopes, connections = [] }) =>
      platformId === platform &&
      (scope === undefined || [scopes, ...connections.map((one) => one.scopes)].some((held) => held.includes(scope))),
  );

const granted = (what: string, detail: string, note?: string): ToolAnswer =>
  toolAnswer({ status: 'granted', detail, note, next: `Make the call that needs ${what}.` });

function refused(error: BrokerError): ToolAnswer {
  if (error.code === 'scope_not_grantable' || error.code === 'not_found')
    return toolAnswer({
      status: 'refused',
      code: error.code,
      detail: error.message,
      next: 'Asking again does not help. Check the platform and the scope with list_permissions, or tell the person.',
    });
  return error.mayHaveActed ? lostAccessAnswer(error) : haltedOr(error);
}

const REASONS = {
  suspended: 'agent_suspended',
  revoked: 'agent_revoked',
  breaker_open: 'circuit_breaker_open',
} as const satisfies Record<Halt['state'], DenyReason>;

/** Formats a halt with the same members in every tool. */
function haltedOr(error: BrokerError): ToolAnswer {
  const { halt } = error.body as { halt?: Halt };
  if (halt === undefined) return errorAnswer(error, false);
  const reason = REASONS[halt.state];
  const halted = { kind: 'halted', reason, detail: error.message, halt, auditId: undefined } as const;
  return outcomeAnswer(halted, { platform: '' }, { written: false });
}
