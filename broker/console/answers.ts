/** Types of the broker's responses to the console pages, derived from the schemas that the routes declare. */
import type { z } from 'zod';
import type { CalledItemRoutes, CalledRoutes } from './called-routes.ts';

/** A route path with its parameters filled in. */
type Filled<Text extends string> = Text extends `${infer Before}{${string}}${infer After}`
  ? `${Before}${string}${Filled<After>}`
  : Text;
type WithQuery<Path extends string> = Path | `${Path}?${string}`;
type PathOf<Name, Method extends string> = Name extends `${Method} ${infer Path}` ? WithQuery<Filled<Path>> : never;

export type Method = 'GET' | 'POST' | 'DELETE';

/** Every path, including its query, that can be requested with the method. */
export type Path<M extends Method> = PathOf<keyof CalledRoutes | keyof CalledItemRoutes, M>;

type RouteIn<Routes, M extends Method, P extends string> = {
  [Name in keyof Routes]: P extends PathOf<Name, M> ? Routes[Name] : never;
}[keyof Routes];

/** Resolves the route of a path. A parameter matches any text here, slashes included: `/a/{id}` is chosen only where no route `/a/{id}/b` matches. */
type RouteAt<M extends Method, P extends string> = [RouteIn<CalledRoutes, M, P>] extends [never]
  ? RouteIn<CalledItemRoutes, M, P>
  : RouteIn<CalledRoutes, M, P>;

type AnswerOf<Route> = Route extends { answers: { readonly 200: { readonly schema: infer Schema extends z.ZodType } } }
  ? z.output<Schema>
  : Route extends { answers: { readonly 201: { readonly schema: infer Made extends z.ZodType } } }
    ? z.output<Made>
    : never;
type BodyOf<Route> = Route extends { body?: infer Schema extends z.ZodType } ? z.input<Schema> : never;

/** The response type of a path, and the type of its request body. */
export type Answer<M extends Method, P extends string> = AnswerOf<RouteAt<M, P>>;
export type Body<M extends Method, P extends string> = BodyOf<RouteAt<M, P>>;

export type Me = Answer<'GET', '/owner/me'>;
export type SignInOptions = Answer<'GET', '/owner/sign-in-options'>;
export type Agent = Answer<'GET', '/owner/agents'>['agents'][number];
export type WholeAgent = Answer<'GET', '/owner/agents/x'>;
export type Invite = Answer<'GET', '/owner/invites'>['invites'][number];
export type NewInvite = Answer<'POST', '/owner/invites'>;
export type Policy = Answer<'GET', '/owner/policies'>['policies'][number];
export type PolicyRules = Body<'POST', '/owner/policies'>['rules'];
export type GuardrailRules = Body<'POST', '/owner/guardrails'>['guardrails'];
export type RecordedSimulation = Answer<'POST', '/owner/simulate/recorded'>;
export type Simulation = Answer<'POST', '/owner/simulate'>;
export type RulesVersion = Answer<'GET', '/owner/guardrails/versions'>['versions'][number];
export type WholePlatform = Answer<'GET', '/owner/platforms/x'>;
/** A grant as owners see and change it. */
export type OwnedGrant = Answer<'GET', '/owner/agents/x/grants'>['grants'][number];
export type StaticKey = Answer<'GET', '/owner/agents/x/static-keys'>['static_keys'][number];
export type IssuedStaticKey = Extract<Answer<'POST', '/owner/agents/x/static-keys'>, { key: string }>;
export type ChangedGrant = Extract<Answer<'POST', '/owner/agents/x/grants/y'>, { grant: unknown }>;
export type AuditRow = Answer<'GET', '/owner/audit'>['rows'][number];
export type DemoMade = Answer<'POST', '/owner/demo'>;
export type Stats = Answer<'GET', '/owner/stats'>;
export type GovernancePlan = Answer<'POST', '/owner/governance/plan'>;
export type GovernanceApply = Answer<'GET', '/owner/governance/applies'>['applies'][number];
export type GovernanceApplied = Answer<'POST', '/owner/governance/apply'>;
export type Report = Answer<'GET', '/owner/diagnostics'>['diagnostics'][number];
export type PushDevice = Answer<'GET', '/owner/push-subscriptions'>['subscriptions'][number];
export type ChannelKind = Answer<'GET', '/owner/channel-kinds'>['kinds'][number];
export type Channel = Answer<'GET', '/owner/channels'>['channels'][number];
export type AuditSink = Answer<'GET', '/owner/audit-sinks'>['sinks'][number];
export type AuditSinkKind = Answer<'GET', '/owner/audit-sink-kinds'>['kinds'][number];
export type Connection = Answer<'GET', '/owner/connections'>['connections'][number];
export type BuiltIn = Answer<'GET', '/owner/built-in-platforms'>['built_in_platforms'][number];
export type Member = Answer<'GET', '/owner/owners'>['owners'][number];
export type Pipeline = Answer<'GET', '/owner/pipelines'>['pipelines'][number];
export type Tested = Answer<'POST', '/owner/connections/x/test'>;
export type SecretPart = NonNullable<WholePlatform['secret_parts']>[number];
export type Platform = Answer<'GET', '/owner/platforms'>['platforms'][number];
export type Tool = Answer<'GET', '/owner/platforms/x/tools'>['tools'][number];
export type Organisation = Answer<'GET', '/owner/organisation'>;
export type RestoredReview = Answer<'GET', '/owner/restored'>;
export type McpAuthorisation = Answer<'GET', '/owner/mcp-authorisations'>['authorisations'][number];
export type PersonTokens = Answer<'GET', '/owner/people'>['tokens'][number];
export type PeopleOfPlatform = Answer<'GET', '/owner/people'>['platforms'][number];
export type EndPeople = Body<'POST', '/owner/people/end'>;
export type CallerIssuer = Answer<'GET', '/owner/caller-issuers'>['caller_issuers'][number];
export type Passkey = Answer<'GET', '/owner/passkeys'>['passkeys'][number];
/** A standing approval as listed, and with its exact request. */
export type StandingApproval = Answer<'GET', '/owner/standing-approvals'>['standing_approvals'][number];
export type StandingOffer = NonNullable<HeldCall['standing']>;
export type StandingBody = NonNullable<Body<'POST', '/owner/approvals/x/approve'>['standing']>;
export type ListedCall = Answer<'GET', '/owner/approvals'>['approvals'][number];
export type HeldCall = Answer<'GET', '/owner/approvals/x'>;
/** The result for one of several held calls that were decided in one request. */
export type SettledCall = Answer<'POST', '/owner/approvals/decide'>['results'][number];
/** An access request as listed, and with what can be granted. */
/** A held call as returned to the owner who has just decided it. */
export type DecidedNow = Answer<'POST', '/owner/approvals/x/approve'>;
export type ListedAccessRequest = Answer<'GET', '/owner/access-requests'>['access_requests'][number];
export type AccessRequest = Answer<'GET', '/owner/access-requests/x'>;
export type DecidedAccessRequest = Answer<'POST', '/owner/access-requests/x/approve'>;
export type AccessGrant = AccessRequest['grants'][number];
/** A registration as listed, and with what an approval of it would do. */
export type ListedRegistration = Answer<'GET', '/owner/registrations'>['registrations'][number];
export type Registration = Answer<'GET', '/owner/registrations/x'>;
/** The response for the page of one held call: while the call waits, and after it has ended. */
export type WaitingCall = Extract<Answer<'GET', '/approve/x/request'>, { status: 'pending' }>;
export type DecidedCall = Exclude<Answer<'GET', '/approve/x/request'>, { status: 'pending' }>;
export type ExactRequest = NonNullable<HeldCall['request']>;
export type Consent = Answer<'GET', '/oauth/consent/x/request'>;
export type ConsentOffer = Consent['offer'];
export type ConsentDecision = Body<'POST', '/oauth/consent/x/decision'>;
export type ScopesOn = Registration['requested_scopes'];
