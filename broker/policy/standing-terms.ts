/** The terms of a standing approval: the held call from which it was created, and the members in which another call may differ. */
import type { JsonObject } from '../../json/json-value.ts';

/** A body as it is sent. `as`: its encoding; bodies of different encodings never match. */
export type WrittenBody =
  | { kind: 'none' }
  | { kind: 'members'; as: 'platform' | 'json' | 'form' | 'multipart' | 'raw'; value: JsonObject; headers: Headers }
  | { kind: 'bytes'; base64: string; headers: Headers }
  /** Not read completely: matches no other body. */
  | { kind: 'unread' };

type Headers = Readonly<Record<string, string>>;

/**
 * A request as it is sent, for comparing with another. `headers`: names in lower case. `door`: the entry point; the raw one passes on what its client wrote.
 */
export type Written = {
  door: 'actions' | 'raw';
  method: string;
  path: string;
  query: string;
  headers: Headers;
  body: WrittenBody;
};

/** The person for whom a call is made, where the platform holds a token per person. */
export type RepeatedCaller = { personId: string | null; verified: boolean; namedBy: string | null };

/** The parts of a call beyond its ask that are compared with an approved call. `tool`: the accepted definition of an MCP tool. */
export type Repeat = {
  written: Written;
  sessionId: string | null;
  caller: RepeatedCaller | null;
  tool: string | null;
};

/**
 * Why a call is held: by its grant, or by a rule, identified by its index in the rules of its version, since names may repeat. `lasting`: a standing approval
 * may replace the approval.
 */
export type Hold =
  | { source: 'grant' }
  | { source: 'policy' | 'guardrail'; rule: number; name: string; lasting: boolean };

/** A call with everything that decided it, as of the time of the decision. */
export type Basis = Repeat & {
  agentId: string;
  platformId: string;
  connectionId: string | null;
  scope: string;
  /** The operations of the manifest by which it was classified. */
  operations: readonly string[];
  manifest: number;
  grant: JsonObject;
  policy: { id: string; version: number };
  guardrails: number;
  holds: readonly Hold[];
};

/** The position of a member in a call. `segment`: counted from 0 after the first slash. */
export type FreePlace =
  | { in: 'path'; segment: number }
  | { in: 'query'; name: string }
  | { in: 'body'; names: readonly string[] };

/** A member that may differ: any value of the same type, or a number above 0 with an upper bound. `member`: its name for people. */
export type Free = { member: string; place: FreePlace; atMost?: number };

/** `session`: only in the session of the held call. */
export type StandingTerms = { basis: Basis; free: readonly Free[]; session: boolean };

/** A standing approval that was not ended. The remaining uses are not included; they are counted in the store. */
export type StandingApproval = { id: string; expiresAt: number; terms: StandingTerms };
