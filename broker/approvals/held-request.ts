/** The request of a held call: what an approver is shown, what is sealed, and what is replayed. */
import { z } from 'zod';
import type { CallRecord } from '../audit/outcome.ts';
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import type { JsonObject, JsonValue } from '../policy/facts.ts';
import type { Action } from '../wire/action.ts';

const StoredCaller = z.strictObject({
  person_id: z.string(),
  verified: z.boolean(),
  named_by: z.string().exactOptional(),
});

/** The person for whom a call is held: a random id, and the issuer or the source that named them. */
export type HeldCaller = z.infer<typeof StoredCaller>;

/** The part of a raw request that is held: the exact bytes to send. */
export type HeldRaw = {
  method: string;
  bodyHeaders: Readonly<Record<string, string>>;
  body: { kind: 'none' } | { kind: 'whole'; bytes: Buffer } | { kind: 'long' | 'stream' };
  join?: { key: string; separate: string; openMs: number } | undefined;
};

const StoredRaw = z.strictObject({
  method: z.string(),
  headers: z.record(z.string(), z.string()),
  body: z.base64().nullable(),
});

/**
 * Builds the request as a value: what an approver is shown, what is sealed, and what is replayed. The caller is never stored (specification, Caller
 * identity), except for the id of the person where the platform holds a token per person.
 */
export function requestOf(call: {
  action: Action;
  headers: Readonly<Record<string, string>>;
  record: Pick<CallRecord, 'caller'>;
  /** For a body that is not an object: the headers that give its type. */
  given?: { bodyHeaders: Readonly<Record<string, string>> } | undefined;
  raw?: HeldRaw | undefined;
}): JsonObject {
  const { action, raw } = call;
  const { caller } = call.record;
  return {
    platform: action.platform,
    endpoint: action.endpoint,
    method: action.method,
    scope: action.scope,
    data: (action.data as JsonValue | undefined) ?? null,
    headers: { ...call.headers, ...call.given?.bodyHeaders },
    connection_id: action.connection_id ?? null,
    reason: action.reason ?? null,
    ...(action.encoding !== undefined && { encoding: action.encoding }),
    ...(raw && {
      raw: {
        method: raw.method,
        headers: { ...raw.bodyHeaders },
        body: raw.body.kind === 'whole' ? raw.body.bytes.toString('base64') : null,
      },
    }),
    ...(caller?.person_id !== undefined && {
      person: {
        person_id: caller.person_id,
        verified: caller.verified,
        ...(caller.named_by !== undefined && { named_by: caller.named_by }),
      },
    }),
  };
}

/** Returns the person for whom a sealed request is made; undefined: for nobody in particular. @throws Error when the stored value cannot be read */
export function callerOf({ person }: JsonObject): HeldCaller | undefined {
  return person === undefined ? undefined : StoredCaller.parse(person);
}

/** SHA-256 of the canonical form (RFC 8785) of a request, in hexadecimal. */
export function requestHash(request: JsonObject): string {
  return sha256Hex(canonicalJson(request));
}

/**
 * The address to which a request is sent, and what its platform's entry adds to it. `written`: a hash of the body's encoding and of the entry's own
 * headers.
 */
export type Destination = { address: string; written: string };

/**
 * Adds the destination to a request before it is sealed. The destination is not part of the request's hash, as earlier versions computed it without
 * one.
 */
export const withDestination = (request: JsonObject, { address, written }: Destination): JsonObject => ({
  ...request,
  address,
  written,
});

/** Returns the destination in a sealed request; requests sealed by an earlier version lack one of its members, or both. */
export const sealedDestination = ({ address, written }: JsonObject): Partial<Destination> => ({
  ...(typeof address === 'string' && { address }),
  ...(typeof written === 'string' && { written }),
});

/** Returns a sentence that says how a call would now be sent differently from what was approved; undefined when it would not. */
export function sentOtherwise(approved: Partial<Destination>, now: Destination): string | undefined {
  if (approved.address !== undefined && approved.address !== now.address)
    return `The request would now be sent to ${now.address}, but was approved for ${approved.address}.`;
  return approved.written !== undefined && approved.written !== now.written
    ? 'The entry of its platform has other headers now, or another encoding of bodies, than when it was held.'
    : undefined;
}

/** Members of a sealed request that are not members of the action. */
const NOT_OF_ACTION = new Set(['person', 'raw', 'address', 'written']);

/** Returns the action from which a sealed request was built: the inverse of `requestOf`. */
export function actionOf(request: JsonObject): Action {
  const present = Object.entries(request).filter(([name, value]) => value !== null && !NOT_OF_ACTION.has(name));
  return Object.fromEntries(present) as Action;
}

/** Returns the raw request inside a sealed one; undefined when it is not a raw request. @throws Error when it cannot be read */
export function rawOf({
  raw,
}: JsonObject): (Pick<HeldRaw, 'method' | 'bodyHeaders'> & { bytes: Buffer | undefined }) | undefined {
  if (raw === undefined) return undefined;
  const { method, headers, body } = StoredRaw.parse(raw);
  return { method, bodyHeaders: headers, bytes: body === null ? undefined : Buffer.from(body, 'base64') };
}
