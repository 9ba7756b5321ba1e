/** The parts of a manifest that decisions use, as written and as compiled (operation.ts). */
import type { JsonObject } from '../../json/json-value.ts';
import type { Method, RefChange } from './call-ask.ts';
import type { Constraints } from './constraints.ts';
import type { NameList } from './names.ts';
import type { Pattern } from './pattern.ts';
import type { FreePlace } from './standing-terms.ts';

export type Operation = { source: string } & (
  | { kind: 'http'; method: Method; path: Pattern }
  | { kind: 'graphql'; operation: 'query' | 'mutation'; field: Pattern }
  | { kind: 'tool'; name: Pattern }
);

/**
 * The format of the text at a pointer: a list of e-mail addresses by default, a whole mail message, an id that only the platform can interpret, several ids
 * separated by commas, or free text that may name anybody, and which therefore no list of recipients allows.
 */
export const RECIPIENT_FORMATS = ['rfc822-base64url', 'id', 'ids', 'text'] as const;
export type RecipientFormat = (typeof RECIPIENT_FORMATS)[number];

/** `optional`: a call that names nobody there sends nothing to anybody. */
export type RecipientPointer = { pointer: string; format?: RecipientFormat; optional?: true };
export type RecipientRule = { operation: Operation; pointers: readonly RecipientPointer[] };
/** A recipient rule that applies to a call, and the value into which its pointers point. */
export type RecipientMatch = RecipientRule & { subject: JsonObject };

/** A recipient pointer as a manifest writes it. */
export type RecipientPointerSource =
  | string
  | { pointer: string; format?: RecipientFormat | undefined; optional?: boolean | undefined };

/**
 * The position at which a call names a ref that it writes, as a manifest writes it. `at`: a JSON pointer into the body, or the name of a parameter; in the
 * path, the ref is what `**` matches. `prefix`: is prepended to form the full name. `unless`: a member of the body, and the value with which this ref is not
 * written.
 */
export type RefPositionSource = {
  in: 'path' | 'body' | 'query';
  at?: string | undefined;
  prefix?: (typeof REF_PREFIXES)[number] | undefined;
  action: RefChange;
  unless?: { at: string; is: boolean } | undefined;
};
export const REF_PREFIXES = ['refs/', 'refs/heads/', 'refs/tags/'] as const;

/**
 * A member of the body whose presence makes unknown which refs a call writes, and why. `values`: only with one of these texts, in which `*` is any text, in
 * any letter case. `unless`: not with this value.
 */
export type RefDoubtSource = {
  in: 'body';
  at: string;
  why: string;
  values?: string[] | undefined;
  unless?: boolean | undefined;
};

/** The refs that an operation writes; an empty list: no ref; a text: why they cannot be determined. */
export type RefRuleSource = readonly (RefPositionSource | RefDoubtSource)[] | string;

/** `names`: the folded names of the pointer. */
export type RefDoubt = {
  at: string;
  names: readonly string[];
  why: string;
  values?: readonly string[];
  unless?: boolean;
};

export type RefPosition = {
  in: RefPositionSource['in'];
  at: string;
  prefix: string;
  action: RefChange;
  unless?: { at: string; is: boolean };
};
/** `folded`: the segments of the operation's path in the form in which spellings are compared. */
export type RefRule = {
  operation: Operation;
  folded: readonly string[];
  writes: readonly RefPosition[] | string;
  doubts: readonly RefDoubt[];
};

/**
 * The kinds of body. An object: as JSON, as a form, or in parts (multipart/form-data). `list`: a JSON array; `text`: sent as it is; `bytes`: decoded from
 * base64.
 */
export const BODY_KINDS = ['json', 'form', 'multipart', 'list', 'text', 'bytes'] as const;
export type BodyKind = (typeof BODY_KINDS)[number];
export type BodyRule = { operation: Operation; kinds: readonly BodyKind[] };

/** A member that may differ under a standing approval, as a manifest writes it. `at_most`: only as a number, with an upper bound. */
export type FreeRuleSource = string | { member: string; at_most?: boolean | undefined };
export type FreeRule = {
  operation: Operation;
  members: readonly { member: string; place: FreePlace; isAmount: boolean }[];
};

/** A parameter that a platform accepts from no agent, as a manifest writes it: in the query and in bodies, or in the query only. */
export type RefusedParameter = string | { name: string; in: 'query' };

/** The access levels of an App's token, by the name of a permission. `if_allowed`: only when the agent also holds that scope and no rule prevents it. */
export type AppPermissions = Readonly<Record<string, AppAccess | { access: AppAccess; if_allowed: string }>>;
type AppAccess = 'read' | 'write' | 'admin';

/** The fields of a manifest that decisions use. */
export type RulesSource = {
  kind: 'rest' | 'graphql' | 'mcp';
  scopes: Readonly<Record<string, readonly string[]>>;
  recipients?: Readonly<Record<string, readonly RecipientPointerSource[]>> | undefined;
  content_scopes?: Readonly<Record<string, readonly ContentRuleSource[]>> | undefined;
  refs?: Readonly<Record<string, RefRuleSource>> | undefined;
  git_push_options?: readonly string[] | undefined;
  follow?: readonly string[] | undefined;
  base_urls?: Readonly<Record<string, string>> | undefined;
  answer_urls?: Readonly<Record<string, readonly string[]>> | undefined;
  masks?: Readonly<Record<string, readonly string[]>> | undefined;
  error_status?: Readonly<Record<string, number>> | undefined;
  app_operations?: Readonly<Record<string, AppPermissions>> | undefined;
  graphql?: { path: string } | undefined;
  body?: 'json' | 'form' | undefined;
  raw_bodies?: readonly ('json' | 'form')[] | undefined;
  bodies?: Readonly<Record<string, BodyKind | readonly BodyKind[]>> | undefined;
  encoded_slash?: boolean | 'as_slash' | undefined;
  refused_parameters?: readonly RefusedParameter[] | undefined;
  free?: Readonly<Record<string, readonly FreeRuleSource[]>> | undefined;
};

export type PlatformRules = {
  kind: 'rest' | 'graphql' | 'mcp';
  scopes: ReadonlyMap<string, readonly Operation[]>;
  recipients: readonly RecipientRule[];
  content: readonly ContentRule[];
  refs: readonly RefRule[];
  /** Names of push options (`git push -o`) that change nothing beyond what a push does anyway. */
  pushOptions: readonly string[];
  /** Reads whose redirects are followed. */
  follow: readonly Operation[];
  /** Operations at another base URL of the platform. */
  baseUrls: readonly { operation: Operation; baseUrl: string }[];
  /** Operations whose answer contains URLs for clients that hold a key, in these members. */
  answerUrls: readonly { operation: Operation; members: readonly string[] }[];
  /** Operations in whose answers these members are always masked, whatever the rules say: keys of the platform. */
  masks: readonly { operation: Operation; members: readonly string[] }[];
  /** Operations whose clients examine only the status: the status of a refusal. */
  errorStatus: readonly { operation: Operation; status: number }[];
  /** Operations for which an App needs other permissions than for their scope. */
  appOperations: readonly { operation: Operation; permissions: AppPermissions }[];
  /** Operations that accept other kinds of body than the platform's default. */
  bodies: readonly BodyRule[];
  /** Members in which calls under one standing approval may differ. */
  free: readonly FreeRule[];
  graphqlPath?: string;
  allowEncodedSlash: boolean;
  /** Whether an escaped slash is checked and sent as a slash. */
  decodeSlash: boolean;
  /** Whether bodies are sent as forms. */
  isForm: boolean;
  /** The kinds of body that clients of the platform send on the raw entry point, unless an entry of `bodies` applies. */
  rawBodies: readonly BodyKind[];
  /** Names of parameters that select for whom or for which account a call is made, or how it is answered; agents may not send them. */
  refused: { query: NameList | undefined; body: NameList | undefined };
  /** Built from `scopes`, by `compilePlatformRules` only. */
  index: OperationIndex;
  /** Whether a call under a scope could stay within the repositories and refs of a grant's constraints (reachable.ts). */
  isReachable(scope: string, constraints: Constraints): boolean;
};

/** A content rule as a manifest writes it. */
export type ContentRuleSource = {
  pointer?: string | undefined;
  paths?: readonly string[] | undefined;
  unless?: readonly PlainValue[] | undefined;
  is?: null | undefined;
  in?: 'query' | undefined;
  scope: string | null;
};

type PlainValue = string | number | boolean;

export type ContentRule = {
  operation: Operation;
  /** The member of the body, or of the arguments of a GraphQL root field, that the rule examines; undefined: the rule applies to every call. */
  pointer: readonly string[] | undefined;
  /** Paths of files that match. Without it every value matches except false and null. */
  paths: readonly Pattern[] | undefined;
  /** Values that do not match. */
  unless: readonly PlainValue[];
  /** Whether only null matches. */
  isNull: boolean;
  /** False: only the query is examined. */
  isOfBody: boolean;
  /** Null: such a call falls under no scope. */
  scope: string | null;
  /** The pointer as the manifest has it, or the operation when the rule has no pointer. */
  source: string;
};

/**
 * Frozen and shared: created when the rules are compiled, returned for every call. `scopes`: those under which the call can be made. `required`: for a call
 * that needs several scopes, lists of which the grant must include one scope each.
 */
export type Classified = {
  kind: 'classified';
  scopes: readonly string[];
  operations: readonly string[];
  required?: readonly (readonly string[])[];
};

/**
 * The rules of a REST platform. `find` returns undefined when no rule matches byte for byte. A path that in another spelling (case, `;parameters`, a trailing
 * slash, see `Pattern`) falls under a more specific rule keeps only the scopes that both readings have: rewriting an endpoint never bypasses the rule that
 * was written for it.
 */
export type HttpIndex = { find(method: Method, path: string): Classified | undefined };

/** GraphQL root fields, or tools, by name. */
export type NameIndex = { find(name: string): Classified | undefined };

export type OperationIndex = {
  http: HttpIndex;
  query: NameIndex;
  mutation: NameIndex;
  tool: NameIndex;
  /** The path of a REST platform's GraphQL endpoint. */
  graphqlEndpoint: Pattern | undefined;
};
