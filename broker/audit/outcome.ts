/** What can become of a governed call. Every kind has an audit row, and only a recorded one can be answered. */
import type { Verdict } from '../policy/facts.ts';

type Audited = { auditId: string };

export type Outcome = Audited &
  (
    | {
        kind: 'answered';
        /** JSON text of the upstream's body. */
        dataJson: string;
        upstreamStatus: number;
        contentType?: string;
        /** Size of the upstream's body as it came. */
        bytes: number;
        /** Further members of `_meta`: encoding, location, headers, redacted, dropped_headers. */
        notes: Record<string, unknown>;
      }
    | { kind: 'held'; approvalId: string; expiresAt: number; reason: string; notes: Record<string, unknown> }
    | { kind: 'denied'; verdict: Extract<Verdict, { kind: 'deny' }> }
    | {
        kind: 'invalid';
        code: 'invalid_endpoint' | 'invalid_headers' | 'invalid_request' | 'payload_too_large';
        detail: string;
      }
    | { kind: 'inactive'; detail: string }
    /** `connectionId`: one that is there, and only has to be connected. */
    | { kind: 'not_connected'; connectionId?: string }
    | { kind: 'consent_required'; reason: 'no_caller' | 'asserted_not_allowed' | 'not_consented' }
    /** `token`: of the access request that waits for an owner's consent. */
    | { kind: 'needs_consent'; token?: string; connectionId: string }
    | { kind: 'credential_unreadable' }
    /** `connectionId`: which one has to be connected again. `malformed`: its credential cannot be sent, so nothing was. */
    | { kind: 'reauth_needed'; connectionId: string; malformed?: true }
    | { kind: 'too_many_pending'; limit: number }
    | { kind: 'unreachable'; code: string; detail: string; sent: boolean }
    | { kind: 'response_blocked'; detail: string }
    /** A replay only: today it would be another call than the one that was approved, or too late. */
    | { kind: 'not_as_approved'; detail: string }
  );

/** Anything but an exhaustive switch does not compile. */
export function assertNever(value: never): never {
  throw new Error(`unforeseen: ${JSON.stringify(value)}`);
}
