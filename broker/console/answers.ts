/** What the broker answers to the pages: types for the browser's modules, from the schemas that the routes declare. */
import type { z } from 'zod';
import type { approveRequest } from '../http/routes/approve.ts';
import type { consentDecision, consentRequest } from '../http/routes/consent.ts';
import type { ownerDiagnostics } from '../http/routes/diagnostics.ts';
import type {
  approveAccessRequest,
  denyAccessRequest,
  ownerAccessRequest,
  ownerAccessRequests,
} from '../http/routes/owner/access-requests.ts';
import type { ownerAgentMoves, ownerAgents } from '../http/routes/owner/agents.ts';
import type { decideApprovals, denyApprovals, ownerApproval, ownerApprovals } from '../http/routes/owner/approvals.ts';
import type { decideManyApprovals } from '../http/routes/owner/approvals-bulk.ts';
import type { ownerAudit } from '../http/routes/owner/audit.ts';
import type {
  distrustCallerIssuer,
  ownerCallerIssuers,
  trustCallerIssuer,
} from '../http/routes/owner/caller-issuers.ts';
import type { connectOAuth, disconnectOAuth } from '../http/routes/owner/connection-oauth.ts';
import type { changeConnection, ownerConnections, tryConnection } from '../http/routes/owner/connections.ts';
import type { changeOwnerGrant, ownerGrants, removeOwnerGrants } from '../http/routes/owner/grants.ts';
import type { endOwnerMcpAuthorisation, ownerMcpAuthorisations } from '../http/routes/owner/mcp-authorisations.ts';
import type { ownerMe, ownerSignInOptions } from '../http/routes/owner/me.ts';
import type { changeOrganisation, ownerOrganisation } from '../http/routes/owner/organisation.ts';
import type { ownerOwners } from '../http/routes/owner/owners.ts';
import type { beginPasskeyAssertion, finishPasskeyAssertion } from '../http/routes/owner/passkey-assertions.ts';
import type { ownerPasskeys, removeOwnerPasskey, renameOwnerPasskey } from '../http/routes/owner/passkeys.ts';
import type { confirmOwnerPerson, endOwnerPeople, ownerPeople } from '../http/routes/owner/people.ts';
import type { setOwnerPerPerson } from '../http/routes/owner/per-person.ts';
import type { acceptPlatformTool, platformTools, refreshPlatformTools } from '../http/routes/owner/platform-tools.ts';
import type { ownerPlatforms } from '../http/routes/owner/platforms.ts';
import type { ownerPolicies, ownerPolicy } from '../http/routes/owner/policies.ts';
import type { decideRegistrations, ownerRegistration, ownerRegistrations } from '../http/routes/owner/registrations.ts';
import type { ownerSignIn, ownerSignOut } from '../http/routes/owner/sessions.ts';
import type { ownerSimulate } from '../http/routes/owner/simulate.ts';
import type { issueOwnerStaticKey, ownerStaticKeys, revokeOwnerStaticKey } from '../http/routes/owner/static-keys.ts';
import type {
  passkeyRegisterBegin,
  passkeyRegisterFinish,
  passkeySignBegin,
  passkeySignFinish,
} from '../http/routes/passkeys.ts';

/** The routes that the pages ask, by method and path. */
type Asked = {
  'GET /owner/me': typeof ownerMe;
  'GET /owner/sign-in-options': typeof ownerSignInOptions;
  'POST /owner/sign-in': typeof ownerSignIn;
  'POST /owner/sign-out': typeof ownerSignOut;
  'GET /owner/agents': typeof ownerAgents;
  'POST /owner/agents/{id}/{verb}': (typeof ownerAgentMoves)[number];
  'GET /owner/agents/{agent_id}/grants': typeof ownerGrants;
  'POST /owner/agents/{agent_id}/grants/{platform}': typeof changeOwnerGrant;
  'DELETE /owner/agents/{agent_id}/grants/{platform}': typeof removeOwnerGrants;
  'GET /owner/agents/{agent_id}/static-keys': typeof ownerStaticKeys;
  'POST /owner/agents/{agent_id}/static-keys': typeof issueOwnerStaticKey;
  'DELETE /owner/agents/{agent_id}/static-keys/{key}': typeof revokeOwnerStaticKey;
  'GET /owner/policies': typeof ownerPolicies;
  'GET /owner/policies/{id}': typeof ownerPolicy;
  'POST /owner/simulate': typeof ownerSimulate;
  'GET /owner/owners': typeof ownerOwners;
  'GET /owner/audit': typeof ownerAudit;
  'GET /owner/diagnostics': typeof ownerDiagnostics;
  'GET /owner/connections': typeof ownerConnections;
  'POST /owner/connections/{id}/test': typeof tryConnection;
  'POST /owner/connections/{id}/settings': typeof changeConnection;
  'POST /owner/connections/{id}/oauth/start': typeof connectOAuth;
  'POST /owner/connections/{id}/oauth/disconnect': typeof disconnectOAuth;
  'GET /owner/platforms': typeof ownerPlatforms;
  'GET /owner/platforms/{platform}/tools': typeof platformTools;
  'POST /owner/platforms/{platform}/tools/refresh': typeof refreshPlatformTools;
  'POST /owner/platforms/{platform}/tools/{tool}/accept': typeof acceptPlatformTool;
  'GET /owner/people': typeof ownerPeople;
  'POST /owner/people/tokens/{id}/confirm': typeof confirmOwnerPerson;
  'POST /owner/people/end': typeof endOwnerPeople;
  'POST /owner/platforms/{platform}/per-person': typeof setOwnerPerPerson;
  'GET /owner/caller-issuers': typeof ownerCallerIssuers;
  'POST /owner/caller-issuers': typeof trustCallerIssuer;
  'POST /owner/caller-issuers/remove': typeof distrustCallerIssuer;
  'GET /owner/organisation': typeof ownerOrganisation;
  'POST /owner/organisation': typeof changeOrganisation;
  'GET /owner/mcp-authorisations': typeof ownerMcpAuthorisations;
  'DELETE /owner/mcp-authorisations/{id}': typeof endOwnerMcpAuthorisation;
  'GET /owner/passkeys': typeof ownerPasskeys;
  'POST /owner/passkeys/assert/begin': typeof beginPasskeyAssertion;
  'POST /owner/passkeys/assert/finish': typeof finishPasskeyAssertion;
  'POST /owner/passkeys/{id}/rename': typeof renameOwnerPasskey;
  'DELETE /owner/passkeys/{id}': typeof removeOwnerPasskey;
  'GET /owner/approvals': typeof ownerApprovals;
  'GET /owner/approvals/{id}': typeof ownerApproval;
  'POST /owner/approvals/{id}/{verb}': (typeof decideApprovals)[number];
  'POST /owner/approvals/deny': typeof denyApprovals;
  'POST /owner/approvals/decide': typeof decideManyApprovals;
  'GET /owner/access-requests': typeof ownerAccessRequests;
  'GET /owner/access-requests/{id}': typeof ownerAccessRequest;
  'POST /owner/access-requests/{id}/{verb}': typeof approveAccessRequest | typeof denyAccessRequest;
  'GET /owner/registrations': typeof ownerRegistrations;
  'GET /owner/registrations/{id}': typeof ownerRegistration;
  'POST /owner/registrations/{id}/{verb}': (typeof decideRegistrations)[number];
  'GET /approve/{id}/request': typeof approveRequest;
  'GET /oauth/consent/{uid}/request': typeof consentRequest;
  'POST /oauth/consent/{uid}/decision': typeof consentDecision;
  'POST /v1/approvals/passkeys/sign/begin': typeof passkeySignBegin;
  'POST /v1/approvals/passkeys/sign/finish': typeof passkeySignFinish;
  'POST /v1/approvals/passkeys/register/begin': typeof passkeyRegisterBegin;
  'POST /v1/approvals/passkeys/register/finish': typeof passkeyRegisterFinish;
};

/** A path with its parameters filled in. */
type Filled<Text extends string> = Text extends `${infer Before}{${string}}${infer After}`
  ? `${Before}${string}${Filled<After>}`
  : Text;
type WithQuery<Path extends string> = Path | `${Path}?${string}`;
type PathOf<Name, Method extends string> = Name extends `${Method} ${infer Path}` ? WithQuery<Filled<Path>> : never;

export type Method = 'GET' | 'POST' | 'DELETE';

/** Every path that can be asked by a method, its query included. */
export type Path<M extends Method> = PathOf<keyof Asked, M>;

type RouteAt<M extends Method, P extends string> = {
  [Name in keyof Asked]: P extends PathOf<Name, M> ? Asked[Name] : never;
}[keyof Asked];

type AnswerOf<Route> = Route extends { answers: { readonly 200: { readonly schema: infer Schema extends z.ZodType } } }
  ? z.output<Schema>
  : never;
type BodyOf<Route> = Route extends { body?: infer Schema extends z.ZodType } ? z.input<Schema> : never;

/** What a path answers, and the body that it takes. */
export type Answer<M extends Method, P extends string> = AnswerOf<RouteAt<M, P>>;
export type Body<M extends Method, P extends string> = BodyOf<RouteAt<M, P>>;

export type Me = Answer<'GET', '/owner/me'>;
export type SignInOptions = Answer<'GET', '/owner/sign-in-options'>;
export type Agent = Answer<'GET', '/owner/agents'>['agents'][number];
/** As owners see and change it. */
export type OwnedGrant = Answer<'GET', '/owner/agents/x/grants'>['grants'][number];
export type StaticKey = Answer<'GET', '/owner/agents/x/static-keys'>['static_keys'][number];
export type IssuedStaticKey = Extract<Answer<'POST', '/owner/agents/x/static-keys'>, { key: string }>;
export type ChangedGrant = Extract<Answer<'POST', '/owner/agents/x/grants/y'>, { grant: unknown }>;
export type AuditRow = Answer<'GET', '/owner/audit'>['rows'][number];
export type Report = Answer<'GET', '/owner/diagnostics'>['diagnostics'][number];
export type Connection = Answer<'GET', '/owner/connections'>['connections'][number];
export type Platform = Answer<'GET', '/owner/platforms'>['platforms'][number];
export type Tool = Answer<'GET', '/owner/platforms/x/tools'>['tools'][number];
export type Organisation = Answer<'GET', '/owner/organisation'>;
export type McpAuthorisation = Answer<'GET', '/owner/mcp-authorisations'>['authorisations'][number];
export type PersonTokens = Answer<'GET', '/owner/people'>['tokens'][number];
export type PeopleOfPlatform = Answer<'GET', '/owner/people'>['platforms'][number];
export type EndPeople = Body<'POST', '/owner/people/end'>;
export type CallerIssuer = Answer<'GET', '/owner/caller-issuers'>['caller_issuers'][number];
export type Passkey = Answer<'GET', '/owner/passkeys'>['passkeys'][number];
/** Of the list, and with the exact request. */
export type ListedCall = Answer<'GET', '/owner/approvals'>['approvals'][number];
export type HeldCall = Answer<'GET', '/owner/approvals/x'>;
/** What became of one of several that were decided at once. */
export type SettledCall = Answer<'POST', '/owner/approvals/decide'>['results'][number];
/** Of the list, and with what there is to grant. */
/** A held call as whoever has just decided it reads it. */
export type DecidedNow = Answer<'POST', '/owner/approvals/x/approve'>;
export type ListedAccessRequest = Answer<'GET', '/owner/access-requests'>['access_requests'][number];
export type AccessRequest = Answer<'GET', '/owner/access-requests/x'>;
export type DecidedAccessRequest = Answer<'POST', '/owner/access-requests/x/approve'>;
export type AccessGrant = AccessRequest['grants'][number];
/** Of the list, and with what an approval would make of it. */
export type ListedRegistration = Answer<'GET', '/owner/registrations'>['registrations'][number];
export type Registration = Answer<'GET', '/owner/registrations/x'>;
/** What the page of one held call gets: while it waits, and when it is over. */
export type WaitingCall = Extract<Answer<'GET', '/approve/x/request'>, { status: 'pending' }>;
export type DecidedCall = Exclude<Answer<'GET', '/approve/x/request'>, { status: 'pending' }>;
export type ExactRequest = NonNullable<HeldCall['request']>;
export type Consent = Answer<'GET', '/oauth/consent/x/request'>;
export type ConsentOffer = Consent['offer'];
export type ConsentDecision = Body<'POST', '/oauth/consent/x/decision'>;
export type ScopesOn = Registration['requested_scopes'];
