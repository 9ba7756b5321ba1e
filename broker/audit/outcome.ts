/** Outcomes of a governed call. Audit row, HTTP response, execution_error and stored response are derived from them. */

import type { BlockedCause, RawAnswer } from '../egress/answers/answer.ts';
import type { Followed } from '../egress/redirect.ts';
import type { StreamEnding, Transferred } from '../egress/streamed-body.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import type { GitRef, Instant, Verdict } from '../policy/facts.ts';
import type { ReportedLimit } from '../policy/limit.ts';
import type { Sentence } from '../sentences/part.ts';
import type { Action } from '../wire/action.ts';
import type { ApprovalProvenance } from './approval-state.ts';
import type { PiiKind } from './pii.ts';

/** The agent that an audit row is about. All null: the row is about the organisation as a whole. */
export type AuditedAgent = { id: string | null; agentId: string | null; parentAgentId: string | null };

/** A decision with its basis. `decision`: a RecordedDecision in JSON, as the audit row stores it: both rows of a call contain the same text. */
export type Decided = { readonly verdict: Verdict; readonly decision: string };

/** What is recorded of a git request. */
export type RecordedGit = {
  readonly reason: 'advertised' | 'probe' | undefined;
  readonly refs: readonly GitRef[];
  readonly pushOptions: readonly string[];
};

/**
 * What a code host reports of a push. `refused`: names of the refs that it did not change. `absent`: some other refs have no report,
 * because the client did not ask for one (`not_asked`), or although it did (`missing`).
 */
export type PushReport = { readonly refused: readonly string[]; readonly absent?: 'not_asked' | 'missing' };

/** What is known of a call independent of its outcome. Immutable: a later step that adds facts makes a copy. */
export type CallRecord = {
  readonly auditId: string;
  readonly correlationId: string;
  readonly createdAt: Instant;
  /** The process that executes the call. */
  readonly instanceId: string;
  readonly organisationId: string;
  readonly agent: AuditedAgent;
  readonly sessionId: string | null;
  /** For a malformed request: the members that are valid by themselves. */
  readonly asked: Partial<Pick<Action, 'platform' | 'scope' | 'method' | 'reason'>>;
  /** The endpoint in normal form; null until it was parsed. */
  readonly path: string | null;
  /** Headers of the agent that are not sent to the platform. */
  readonly droppedHeaders: readonly string[];
  /** Kinds of personal data in the request; null: not scanned. */
  readonly pii: readonly PiiKind[] | null;
  /** For a git request: `reason` of an advertisement or a probe that was answered, and the refs that a push asks to change. */
  readonly git: RecordedGit | undefined;
  readonly decided: Decided | undefined;
  readonly connectionId: string | null;
  /** For a replay: the approval. */
  readonly approval: { readonly id: string; readonly provenance: ApprovalProvenance } | undefined;
  /** The standing approval that allowed the call, and how many uses were left after it. */
  readonly standing?: { readonly id: string; readonly left: number } | undefined;
  /** The limits of rules that the call counts against, with what was used before it and what it uses. */
  readonly limits?: readonly ReportedLimit[] | undefined;
  /** Whether a token refresh was due and failed. */
  readonly refreshUnavailable: boolean;
  /** The caller, on a platform that holds one token per person; undefined: the platform does not, or no caller was accepted. */
  readonly caller?: RecordedCaller | undefined;
  /** The bearer that authenticated the agent, by its id; undefined: the agent signed its own token. */
  readonly bearer?: { static_key: string } | { workload: string } | undefined;
  /** Why the answer was withheld from the agent, or cut, though the call was allowed when it began. */
  readonly accessEnded?: AccessEnded | undefined;
  /** Id of the trace that the call belongs to; undefined: not traced. */
  readonly traceId?: string | undefined;
};

/**
 * An accepted caller. `person_id`: random; absent while nothing is stored for this person. `named_by`: the issuer of the assertion, or the
 * source; never personal data from either.
 */
export type RecordedCaller = { readonly verified: boolean; readonly person_id?: string; readonly named_by?: string };

/** A platform's response as returned to the agent. */
export type UpstreamAnswer = {
  /** JSON text of the upstream's body; UTF-8 bytes for a large body. */
  dataJson: string | Buffer;
  upstreamStatus: number;
  contentType: string | undefined;
  /** Size of the upstream's body as received. */
  bytes: number;
  /** `base64` for a binary body. */
  encoding: string | undefined;
  /** Target of a redirect answer, without its query. */
  location: string | undefined;
  headers: Readonly<Record<string, string>> | undefined;
  /** Whether the injected credential was redacted from the answer. */
  redacted: boolean;
  /** How many members and values were masked; undefined: no masking applies to this answer. */
  masked?: number | undefined;
  /** Whether the body reports a failure, though the status is one of success. */
  failed: boolean;
  /** Present when the answer comes from the address that the platform redirected to. */
  followed?: Followed | undefined;
  /** For an approved raw call: the answer in the platform's own form. */
  raw?: RawAnswer | undefined;
};

/**
 * Why a credential does not work. `expired`: known before anything was sent. `refresh_failed`: it could not be refreshed.
 * `refused`: the platform answered 401. `malformed`: it cannot be sent. `no_token`: the platform issues an App no token.
 */
export type ReauthCause = 'expired' | 'refresh_failed' | 'refused' | 'malformed' | 'no_token';

/**
 * Why the answer of a code host is not passed on. `auth_refused`: the credential lacks the permission. `unexpected`: the status or the
 * media type is not one of git.
 */
export type NotPassedOn = 'auth_refused' | 'not_found' | 'redirected' | 'unexpected';

/** The call was sent, and the platform refused it because a consent is missing. `upstreamStatus`: 403 when absent. */
type Refused = { readonly upstreamStatus?: number; readonly responsePii: readonly PiiKind[] | null };

type End =
  /** `responsePii`: null if not scanned. */
  | ({ kind: 'answered'; responsePii: readonly PiiKind[] | null } & UpstreamAnswer)
  | { kind: 'held'; approvalId: string; expiresAt: Instant; sentence: Sentence }
  | { kind: 'denied'; verdict: Extract<Verdict, { kind: 'deny' }> }
  | {
      kind: 'invalid';
      code:
        | 'invalid_endpoint'
        | 'invalid_headers'
        | 'invalid_request'
        | 'not_found'
        | 'method_not_allowed'
        | 'payload_too_large'
        | 'git_request_too_large'
        | 'idempotency_outcome_unknown'
        | 'idempotency_key_reused';
      detail: string;
    }
  | { kind: 'inactive'; detail: string }
  /** `connectionId`: an existing connection that has to be connected. */
  | { kind: 'not_connected'; connectionId?: string }
  /**
   * `detail`: more than the reason contains. `isTooLittle`: the person has consented, to less than the call needs. `consent`: where the person
   * goes to consent. `awaits`: the person has consented and an owner has to confirm it first; or too many consents of the agent are pending,
   * so no other was started.
   */
  | {
      kind: 'consent_required';
      reason: 'no_caller' | 'asserted_not_allowed' | 'not_consented';
      detail?: string;
      isTooLittle?: true;
      consent?: { readonly token: string; readonly expiresAt: Instant };
      awaits?: 'owner' | 'other_consents';
      refused?: Refused;
    }
  /** `token`: of the access request that waits for an owner's consent. */
  | { kind: 'needs_consent'; connectionId: string; scope: string; token?: string; refused?: Refused }
  | { kind: 'credential_unreadable' }
  /** `connectionId`: the connection that has to be connected again. `token`: of this agent's pending access request for the scope. */
  | {
      kind: 'reauth_needed';
      connectionId: string;
      cause: ReauthCause;
      detail?: string;
      token?: string;
      responsePii?: readonly PiiKind[] | null;
    }
  | { kind: 'too_many_pending'; limit: number }
  /** Too many calls of the family, or of all agents, are in flight, or too many bytes of their answers. */
  | { kind: 'too_many_calls' }
  /** The client of a git request disconnected, or stopped sending, before the request could be decided. Nothing was sent on. */
  | { kind: 'request_cut'; detail: string }
  /** The request needs an approval but cannot be held: git clients do not wait, and a streamed body is not stored. */
  | { kind: 'cannot_hold' }
  | { kind: 'unreachable'; code: string; detail: string; sent: boolean; followed?: Followed | undefined }
  | { kind: 'response_blocked'; cause: BlockedCause; upstreamStatus: number; followed?: Followed | undefined }
  /**
   * The answer was streamed through. `received`: the answer's body; `sent`: the request's body; `redacted`: the credential was removed from
   * the headers or the text. `masked`: how many members and values were masked; undefined: no masking applies. `report`: of a push, as far
   * as it was received.
   */
  | {
      kind: 'streamed';
      upstreamStatus: number;
      ended: StreamEnding;
      received: Transferred;
      sent: Transferred;
      redacted: boolean;
      masked?: number | undefined;
      followed?: Followed | undefined;
      report?: PushReport | undefined;
    }
  /** The platform's answer is not one that this entry point passes on. `sent`: the body of the request. */
  | { kind: 'not_passed_on'; cause: NotPassedOn; upstreamStatus: number; sent?: Transferred }
  /** Replays only: the call would differ from the approved one today, or the approval is too old. */
  | { kind: 'not_as_approved'; reason: string; detail: string };

/** How a call ended. Immutable. Each kind has exactly one audit row (`rowOf`), and only a recorded outcome is returned to the client. */
export type Outcome = Readonly<End> & { readonly call: CallRecord };

export type OutcomeOf<Kind extends Outcome['kind']> = Extract<Outcome, { kind: Kind }>;

/** All outcomes except these kinds. A new kind is included, so that code which handles them does not compile without a case for it. */
type Without<Kind extends Outcome['kind']> = Exclude<Outcome, { kind: Kind }>;

/** Outcomes of entry points that stream answers in the platform's own form. The excluded kinds occur only in replays, or only in git. */
export type StreamOutcome = Without<'not_passed_on' | 'not_as_approved'>;

/** Outcomes of entry points that read answers completely. */
export type WholeOutcome = Exclude<StreamOutcome, { kind: 'streamed' | 'cannot_hold' }>;

/** Outcomes of git requests: they are never held, and answers of the code host are never read completely. */
export type GitOutcome = Without<'answered' | 'response_blocked' | 'held' | 'too_many_pending' | 'not_as_approved'>;

/** Outcomes of a replay without an answer to store: a replay is not held again, and its answer is not streamed. */
export type ReplayFailure = Without<
  'answered' | 'streamed' | 'cannot_hold' | 'not_passed_on' | 'held' | 'too_many_pending' | 'request_cut'
>;

/** Details of a withheld response. */
export const BLOCKED_DETAILS: Readonly<Record<BlockedCause, string>> = {
  credential_found: 'The response contained the credential in a form from which it cannot be removed.',
  not_masked:
    'A rule masks members or values of the response, but they cannot be found in it: it is not JSON although members are masked, not text, only a part of the whole, or too long.',
};

/** Makes a switch that is not exhaustive fail to compile. */
export function assertNever(value: never): never {
  throw new Error(`unforeseen: ${JSON.stringify(value)}`);
}
