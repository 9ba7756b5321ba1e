/** A call as it is sent, for comparison with an approved one (policy/standing-approval.ts). */
import { type JsonObject, type Repeat, UnreadBody } from '../policy/facts.ts';
import type { WrittenBody } from '../policy/standing-terms.ts';
import type { Call } from './call.ts';
import { isFormType } from './judge-body.ts';
import type { ToolOnFile } from './mcp/tool-on-file.ts';
import { isLong } from './raw-request.ts';

/** What of a call is compared. */
export type Repeatable = { who: Pick<Call['who'], 'sessionId'> } & Pick<
  Call,
  'action' | 'path' | 'query' | 'headers' | 'git' | 'raw' | 'given' | 'caller'
>;

/** Undefined for git requests, which are never held. */
export function repeatOf(call: Repeatable, onFile: ToolOnFile | undefined): Repeat | undefined {
  const { action, path, query, headers, git, raw, caller } = call;
  if (git) return undefined;
  return {
    written: {
      door: raw ? 'raw' : 'actions',
      method: raw?.method ?? action.method,
      path,
      query,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      body: bodyOf(call),
    },
    sessionId: call.who.sessionId,
    caller:
      caller === undefined || 'reason' in caller
        ? null
        : { personId: caller.personId ?? null, verified: caller.verified, namedBy: caller.namedBy ?? null },
    tool: onFile?.row?.accepted_hash ?? null,
  };
}

const UNREAD: WrittenBody = { kind: 'unread' };

function bodyOf({ action, raw, given }: Pick<Call, 'action' | 'raw' | 'given'>): WrittenBody {
  if (raw) return rawBody(raw);
  const { data } = action;
  if (data === undefined) return { kind: 'none' };
  const isMembers = typeof data === 'object' && !Array.isArray(data);
  if (!given) return isMembers ? membersOf('platform', data) : UNREAD;
  const { judged, written, bodyHeaders } = given;
  if (isMembers && !(judged instanceof UnreadBody))
    return membersOf(written.as === 'bytes' ? 'json' : written.as, data, bodyHeaders);
  // A list, text or file is compared byte by byte: standing terms can leave nothing in it open, so it needs no parsing.
  return written.as === 'bytes'
    ? { kind: 'bytes', base64: written.bytes.toString('base64'), headers: bodyHeaders }
    : UNREAD;
}

/** A form is compared byte by byte, because its members can be written in several ways. */
function rawBody({ body, judged, bodyHeaders }: NonNullable<Call['raw']>): WrittenBody {
  if (body.kind === 'none') return { kind: 'none' };
  if (isLong(body) || judged instanceof UnreadBody) return UNREAD;
  if (judged !== undefined && !isFormType(bodyHeaders)) return membersOf('raw', judged, bodyHeaders);
  return { kind: 'bytes', base64: body.bytes.toString('base64'), headers: bodyHeaders };
}

const membersOf = (
  as: Extract<WrittenBody, { kind: 'members' }>['as'],
  value: object,
  headers: Readonly<Record<string, string>> = {},
): WrittenBody => ({ kind: 'members', as, value: value as JsonObject, headers });
