/** The request of a held call: what an approver is shown, what is sealed, and what is replayed. */
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import type { JsonObject } from '../policy/facts.ts';
import type { Action } from '../wire/action.ts';

/**
 * The exact request as a value: what an approver is shown, what is sealed, and what is replayed. Without the caller,
 * which is never stored (specification, Caller identity).
 */
export function requestOf(call: { action: Action; headers: Readonly<Record<string, string>> }): JsonObject {
  const { action } = call;
  return {
    platform: action.platform,
    endpoint: action.endpoint,
    method: action.method,
    scope: action.scope,
    data: (action.data as JsonObject | undefined) ?? null,
    headers: { ...call.headers },
    connection_id: action.connection_id ?? null,
    reason: action.reason ?? null,
  };
}

/** SHA-256 of the canonical form (RFC 8785) of a request, in hexadecimal. */
export function requestHash(request: JsonObject): string {
  return sha256Hex(canonicalJson(request));
}

/** The action that a sealed request was made of: the other direction of `requestOf`. */
export function actionOf(request: JsonObject): Action {
  const present = Object.entries(request).filter(([, value]) => value !== null);
  return Object.fromEntries(present) as Action;
}
