/** What a standing approval names: the held call that it was made from, and the members in which another call may differ. */
import type { JsonObject } from '../../json/json-value.ts';

/** A body as it is sent. `as`: how its members are written; members of one kind are never those of another. */
export type WrittenBody =
  | { kind: 'none' }
  | { kind: 'members'; as: 'platform' | 'json' | 'form' | 'multipart' | 'raw'; value: JsonObject; headers: Headers }
  | { kind: 'bytes'; base64: string; headers: Headers }
  /** Not read as a whole: nothing is like it. */
  | { kind: 'unread' };

type Headers = Readonly<Record<string, string>>;

/** A request as it is sent, for comparing with another. `headers`: names in lower case. `door`: the raw one passes on what its client wrote. */
export type Written = {
  door: 'actions' | 'raw';
  method: string;
  path: string;
  query: string;
  headers: Headers;
  body: WrittenBody;
};

/** For whom a call is, where the platform holds a token per person. */
export type RepeatedCaller = { personId: string | null; verified: boolean; namedBy: string | null };

/** What a call is beside its ask, as it is compared with one that was approved. `tool`: the definition of an MCP tool, as it was accepted. */
export type Repeat = {
  written: Written;
  sessionId: string | null;
  caller: RepeatedCaller | null;
  tool: string | null;
};

/**
 * What holds a call: its grant, or a rule, by its place in the rules of its version, since names may come twice. `lasting`: a standing
 * approval may stand in for it.
 */
export type Hold =
  | { source: 'grant' }
  | { source: 'policy' | 'guardrail'; rule: number; name: string; lasting: boolean };

/** A call with all that decides it, of the moment at which it was decided. */
export type Basis = Repeat & {
  agentId: string;
  platformId: string;
  connectionId: string | null;
  scope: string;
  /** By which operations of the manifest it was classified. */
  operations: readonly string[];
  manifest: number;
  grant: JsonObject;
  policy: { id: string; version: number };
  guardrails: number;
  holds: readonly Hold[];
};

/** Where a member of a call is. `segment`: counted from 0 after the first slash. */
export type FreePlace =
  | { in: 'path'; segment: number }
  | { in: 'query'; name: string }
  | { in: 'body'; names: readonly string[] };

/** A member that may differ: anything of the same type, or a number above 0 and of at most so much. `member`: as a person names it. */
export type Free = { member: string; place: FreePlace; atMost?: number };

/** `session`: only in the session of the held call. */
export type StandingTerms = { basis: Basis; free: readonly Free[]; session: boolean };

/** One that has not ended. How many uses are left is known where they are counted, and only there. */
export type StandingApproval = { id: string; expiresAt: number; terms: StandingTerms };
