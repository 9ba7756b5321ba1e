/** Outcomes of a governed call. Audit row, HTTP response, execution_error and stored response are derived from it. */

import type { BlockedCause, RawAnswer } from '../egress/answer.ts';
import type { Followed } from '../egress/redirect.ts';
import type { StreamEnding, Transferred } from '../egress/streamed-body.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import type { GitRef, Instant, Verdict } from '../policy/facts.ts';
import type { ToldLimit } from '../policy/limit.ts';
import type { Sentence } from '../sentences/part.ts';
import type { Action } from '../wire/action.ts';
import type { ApprovalProvenance } from './approval-state.ts';
import type { PiiKind } from './pii.ts';
import type { RecordedDecision } from './receipt.ts';

/** Who an audit row is about. All null: the organisation as a whole. */
export type AuditedAgent = { id: string | null; agentId: string | null; parentAgentId: string | null };

/** A decision with its basis, as in its row. */
export type Decided = { readonly verdict: Verdict; readonly decision: RecordedDecision };

/** Of a git request. */
export type RecordedGit = {
  readonly reason: 'advertised' | 'probe' | undefined;
  readonly refs: readonly GitRef[];
  readonly pushOptions: readonly string[];
};

/**
 * What a code host reports of a push. `refused`: names of the refs that it did not change. `absent`: of some of the others nothing was
 * reported, because the client asked for no report, or though it did.
 */
export type PushReport = { readonly refused: readonly string[]; readonly absent?: 'not_asked' | 'missing' };

/** What is known of a call independent of its outcome. Immutable: a step that learns more makes a new one. */
export type CallRecord = {
  readonly auditId: string;
  readonly correlationId: string;
  readonly createdAt: Instant;
  /** The process that executes the call. */
  readonly instanceId: string;
  readonly organisationId: string;
  readonly agent: AuditedAgent;
  readonly sessionId: string | null;
  /** Of a malformed request: as much as is well-formed by itself. */
  readonly asked: Partial<Pick<Action, 'platform' | 'scope' | 'method' | 'reason'>>;
  /** The endpoint in normal form; null until it was read. */
  readonly path: string | null;
  /** Headers of the agent that are not sent. */
  readonly droppedHeaders: readonly string[];
  /** Kinds of personal data in the request; null: not scanned. */
  readonly pii: readonly PiiKind[] | null;
  /** Of a git request: `reason` of an advertisement or a probe that was answered, and what a push asks to change. */
  readonly git: RecordedGit | undefined;
  readonly decided: Decided | undefined;
  readonly connectionId: string | null;
  /** For a replay: the approval. */
  readonly approval: { readonly id: string; readonly provenance: ApprovalProvenance } | undefined;
  /** By which standing approval it was made, and how many uses of that were left then. */
  readonly standing?: { readonly id: string; readonly left: number } | undefined;
  /** What is used of the limits of rules with it. */
  readonly limits?: readonly ToldLimit[] | undefined;
  /** A token refresh was due and failed. */
  readonly refreshUnavailable: boolean;
  /** For whom it is, on a platform that holds one token per person; undefined: it holds none, or nobody was honoured. */
  readonly caller?: RecordedCaller | undefined;
  /** By what the agent was authenticated, by its id; undefined: it signed its token. */
  readonly bearer?: { static_key: string } | { workload: string } | undefined;
  /** Why the agent was not given the answer, or not all of it, though the call was allowed when it began. */
  readonly accessEnded?: AccessEnded | undefined;
  /** The trace that it is in; undefined: it is not traced. */
  readonly traceId?: string | undefined;
};

/**
 * A caller who was honoured. `person_id`: random; absent when nothing was ever begun for this person. `named_by`: the issuer of the
 * assertion, or the source; never what either says of the person.
 */
export type RecordedCaller = { readonly verified: boolean; readonly person_id?: string; readonly named_by?: string };

/** A platform's response as returned to the agent. */
export type UpstreamAnswer = {
  /** JSON text of the upstream's body; of a large one in UTF-8. */
  dataJson: string | Buffer;
  upstreamStatus: number;
  contentType: string | undefined;
  /** Size of the upstream's body as it came. */
  bytes: number;
  /** `base64`: for a binary body. */
  encoding: string | undefined;
  /** Of a redirect: where to, without its query. */
  location: string | undefined;
  headers: Readonly<Record<string, string>> | undefined;
  /** The injected credential was redacted. */
  redacted: boolean;
  /** How many members and values were masked; undefined: nothing is masked in it. */
  masked?: number | undefined;
  /** The body says that the platform did not do it, though the status is one of success. */
  failed: boolean;
  /** It is of the address that the platform redirected to. */
  followed?: Followed | undefined;
  /** Of an approved raw call. */
  raw?: RawAnswer | undefined;
};

/**
 * Why a credential does not work. `expired`: known before anything was sent. `refresh_failed`: it could not be refreshed.
 * `refused`: the platform answered 401. `malformed`: it cannot be sent. `no_token`: the platform issues an App no token.
 */
export type ReauthCause = 'expired' | 'refresh_failed' | 'refused' | 'malformed' | 'no_token';

/**
 * Why an answer of a code host is not passed on. `auth_refused`: the credential may not do this. `unexpected`: another status
 * or media type than git's.
 */
export type NotPassedOn = 'auth_refused' | 'not_found' | 'redirected' | 'unexpected';

/** The platform refused the call for want of a consent: it was sent. `upstreamStatus`: 403 if not said. */
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
  /** `connectionId`: an existing one that has to be connected. */
  | { kind: 'not_connected'; connectionId?: string }
  /**
   * `detail`: more than the reason says. `consent`: where the person goes. `awaits`: the person has consented, and an owner has to
   * confirm that first; or so many consents of the agent wait already that no other was begun.
   */
  | {
      kind: 'consent_required';
      reason: 'no_caller' | 'asserted_not_allowed' | 'not_consented';
      detail?: string;
      consent?: { readonly token: string; readonly expiresAt: Instant };
      awaits?: 'owner' | 'other_consents';
      refused?: Refused;
    }
  /** `token`: of the access request that waits for an owner's consent. */
  | { kind: 'needs_consent'; connectionId: string; token?: string; refused?: Refused }
  | { kind: 'credential_unreadable' }
  /** `connectionId`: which one has to be connected again. `token`: of the pending access request of this agent for the scope. */
  | {
      kind: 'reauth_needed';
      connectionId: string;
      cause: ReauthCause;
      detail?: string;
      token?: string;
      responsePii?: readonly PiiKind[] | null;
    }
  | { kind: 'too_many_pending'; limit: number }
  /** Too many calls of the family, or of all, are under way just now, or too many bytes of their answers. */
  | { kind: 'too_many_calls' }
  /** A git request whose sender left, or stopped sending, before it could be judged. Nothing was sent on. */
  | { kind: 'request_cut'; detail: string }
  /** A request that a person would have to approve: git cannot wait for that, and what is streamed cannot be kept. */
  | { kind: 'cannot_hold' }
  | { kind: 'unreachable'; code: string; detail: string; sent: boolean; followed?: Followed | undefined }
  | { kind: 'response_blocked'; cause: BlockedCause; upstreamStatus: number; followed?: Followed | undefined }
  /**
   * The answer was passed on as it came. `received`: what was; `sent`: the body of the request; `redacted`: the credential was taken
   * out of its headers or its text. `masked`: how many members and values were masked; undefined: nothing is masked in it. `report`: of
   * a push, as far as it came.
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
  /** The platform's answer is not one that this door passes on. `sent`: the body of the request. */
  | { kind: 'not_passed_on'; cause: NotPassedOn; upstreamStatus: number; sent?: Transferred }
  /** A replay only: today it would be another call than the one that was approved, or too late. */
  | { kind: 'not_as_approved'; reason: string; detail: string };

/** How a call ended. Immutable: every kind has one audit row, which rowOf derives, and only a recorded one is answered. */
export type Outcome = Readonly<End> & { readonly call: CallRecord };

export type OutcomeOf<Kind extends Outcome['kind']> = Extract<Outcome, { kind: Kind }>;

/** Outcomes without those of these kinds: a new kind is among them, so that whatever takes them needs a case for it. */
type Without<Kind extends Outcome['kind']> = Exclude<Outcome, { kind: Kind }>;

/** How a call of a door ends that takes answers as they come, in the platform's own form. The rest ends replays, or calls of git, alone. */
export type StreamOutcome = Without<'not_passed_on' | 'not_as_approved'>;

/** How a call of a door ends that takes its answers whole. */
export type WholeOutcome = Exclude<StreamOutcome, { kind: 'streamed' | 'cannot_hold' }>;

/** How a request of git ends: it is never held, and of the code host's answers none is read as a whole. */
export type GitOutcome = Without<'answered' | 'response_blocked' | 'held' | 'too_many_pending' | 'not_as_approved'>;

/** How a replay ends that has no answer to keep: it is held no more, and nobody takes its answer as it comes. */
export type ReplayFailure = Without<
  'answered' | 'streamed' | 'cannot_hold' | 'not_passed_on' | 'held' | 'too_many_pending' | 'request_cut'
>;

/** Details of a withheld response. */
export const BLOCKED_DETAILS: Readonly<Record<BlockedCause, string>> = {
  credential_found: 'The answer held the credential in a form in which it cannot be taken out.',
  not_masked:
    'A rule masks members or values of the answer, and it is in a form in which they cannot be told: no JSON where members are masked, no text, a part of a whole, or too long.',
};

/** Anything but an exhaustive switch does not compile. */
export function assertNever(value: never): never {
  throw new Error(`unforeseen: ${JSON.stringify(value)}`);
}
