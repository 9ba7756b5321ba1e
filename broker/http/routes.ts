/** Every route there is. */
import type { Route } from './route.ts';
import { accessRequest, accessRequestStatus } from './routes/access-requests.ts';
import { actions } from './routes/actions.ts';
import { agentPermissions } from './routes/agent-permissions.ts';
import { agentsMe } from './routes/agents-me.ts';
import { approval, pendingActions } from './routes/approvals.ts';
import { approveRequest } from './routes/approve.ts';
import { attestation } from './routes/attestation.ts';
import { auditReceipt } from './routes/audit-receipt.ts';
import { authzenAccess, authzenConfiguration, authzenEvaluation, authzenEvaluations } from './routes/authzen.ts';
import { bindAgent, bindInvite } from './routes/bind.ts';
import { bindSecret, secretKeys } from './routes/bind-secret.ts';
import { callerConsentStart, callerConsentStatus } from './routes/caller-consent.ts';
import { issueChildren } from './routes/children.ts';
import { consentDecision, consentRequest } from './routes/consent.ts';
import { diagnostics, ownerDiagnostics } from './routes/diagnostics.ts';
import { agentDid, rootDid } from './routes/did.ts';
import { issuingKeys, receiptKeys, version } from './routes/discovery.ts';
import { gitRoutes } from './routes/git.ts';
import { health, live, ready } from './routes/health.ts';
import { labMcp } from './routes/lab-mcp.ts';
import { mcp } from './routes/mcp.ts';
import { metadata } from './routes/metadata.ts';
import { myConnectionRoutes } from './routes/my-connections.ts';
import { oauthRoutes } from './routes/oauth.ts';
import { agentOpenApi } from './routes/openapi.ts';
import {
  approveAccessRequest,
  denyAccessRequest,
  ownerAccessRequest,
  ownerAccessRequests,
} from './routes/owner/access-requests.ts';
import { assignPolicy } from './routes/owner/agent-policy.ts';
import { ownerAgentMoves, ownerAgents } from './routes/owner/agents.ts';
import { decideApprovals, denyApprovals, ownerApproval, ownerApprovals } from './routes/owner/approvals.ts';
import { decideManyApprovals } from './routes/owner/approvals-bulk.ts';
import { exportAudit, ownerAudit } from './routes/owner/audit.ts';
import { bootstrapToken } from './routes/owner/bootstrap-token.ts';
import { distrustCallerIssuer, ownerCallerIssuers, trustCallerIssuer } from './routes/owner/caller-issuers.ts';
import {
  connectionCallback,
  connectOAuth,
  disconnectOAuth,
  ownConnectionCallback,
} from './routes/owner/connection-oauth.ts';
import {
  changeConnection,
  connect,
  ownerConnections,
  removeConnection,
  replaceSecret,
  tryConnection,
} from './routes/owner/connections.ts';
import { ownerEvents } from './routes/owner/events.ts';
import { governanceApply, governanceExport, governancePlan } from './routes/owner/governance.ts';
import { changeOwnerGrant, ownerGrants, removeOwnerGrants } from './routes/owner/grants.ts';
import { changeGuardrails, ownerGuardrails } from './routes/owner/guardrails.ts';
import { inviteAgent, ownerInvites, removeOwnerInvite } from './routes/owner/invites.ts';
import { rotateKeys } from './routes/owner/keys.ts';
import { endOwnerMcpAuthorisation, ownerMcpAuthorisations } from './routes/owner/mcp-authorisations.ts';
import { ownerMe, ownerSignInOptions } from './routes/owner/me.ts';
import { oidcCallback, oidcStart } from './routes/owner/oidc.ts';
import { ownerOpenApi } from './routes/owner/openapi.ts';
import { changeOrganisation, ownerOrganisation } from './routes/owner/organisation.ts';
import { addOwner, ownerOwners, removeOwner } from './routes/owner/owners.ts';
import { beginPasskeyAssertion, finishPasskeyAssertion } from './routes/owner/passkey-assertions.ts';
import { ownerPasskeys, removeOwnerPasskey, renameOwnerPasskey } from './routes/owner/passkeys.ts';
import { confirmOwnerPerson, endOwnerPeople, ownerPeople } from './routes/owner/people.ts';
import { setOwnerPerPerson } from './routes/owner/per-person.ts';
import { acceptPlatformTool, platformTools, refreshPlatformTools } from './routes/owner/platform-tools.ts';
import {
  makePlatform,
  ownerPlatform,
  ownerPlatforms,
  removePlatform,
  switchPlatforms,
} from './routes/owner/platforms.ts';
import { changePolicy, makePolicy, ownerPolicies, ownerPolicy, policyVersions } from './routes/owner/policies.ts';
import { decideRegistrations, ownerRegistration, ownerRegistrations } from './routes/owner/registrations.ts';
import {
  authorizeOwnerSecret,
  ownerSecretAuthorizations,
  removeOwnerSecretAuthorization,
} from './routes/owner/secret-authorizations.ts';
import { ownerLink, ownerSignIn, ownerSignOut, ownerToken } from './routes/owner/sessions.ts';
import { ownerSimulate } from './routes/owner/simulate.ts';
import { issueOwnerStaticKey, ownerStaticKeys, revokeOwnerStaticKey } from './routes/owner/static-keys.ts';
import { passkeyRegisterBegin, passkeyRegisterFinish, passkeySignBegin, passkeySignFinish } from './routes/passkeys.ts';
import { personConsentRoutes } from './routes/person-consent.ts';
import { proxyRoutes } from './routes/proxy.ts';
import { claimKey, register, registrationStatus } from './routes/register.ts';
import { registrationStream } from './routes/register-stream.ts';
import { trqpAuthorization, trqpRecognition } from './routes/trqp.ts';

export const ROUTES: readonly Route[] = [
  actions,
  ...gitRoutes,
  ...proxyRoutes,
  agentsMe,
  agentPermissions,
  authzenAccess,
  authzenEvaluation,
  authzenEvaluations,
  authzenConfiguration,
  trqpAuthorization,
  trqpRecognition,
  issueChildren,
  auditReceipt,
  approval,
  pendingActions,
  accessRequest,
  accessRequestStatus,
  approveRequest,
  register,
  registrationStatus,
  registrationStream,
  claimKey,
  bindAgent,
  bindInvite,
  bindSecret,
  secretKeys,
  passkeyRegisterBegin,
  passkeyRegisterFinish,
  passkeySignBegin,
  passkeySignFinish,
  diagnostics,
  ownerDiagnostics,
  health,
  ready,
  live,
  version,
  issuingKeys,
  receiptKeys,
  attestation,
  rootDid,
  agentDid,
  mcp,
  ...oauthRoutes,
  callerConsentStart,
  callerConsentStatus,
  ...personConsentRoutes,
  ...myConnectionRoutes,
  consentRequest,
  consentDecision,
  labMcp,
  ownerToken,
  ownerLink,
  ownerSignIn,
  ownerSignOut,
  ownerSignInOptions,
  oidcStart,
  oidcCallback,
  ownerMe,
  ownerAgents,
  ...ownerAgentMoves,
  ownerGrants,
  changeOwnerGrant,
  removeOwnerGrants,
  ownerAudit,
  exportAudit,
  ownerEvents,
  ownerApprovals,
  denyApprovals,
  decideManyApprovals,
  ownerApproval,
  ...decideApprovals,
  ownerAccessRequests,
  ownerAccessRequest,
  approveAccessRequest,
  denyAccessRequest,
  ownerPasskeys,
  beginPasskeyAssertion,
  finishPasskeyAssertion,
  renameOwnerPasskey,
  removeOwnerPasskey,
  ownerRegistrations,
  ownerRegistration,
  ...decideRegistrations,
  bootstrapToken,
  ownerStaticKeys,
  issueOwnerStaticKey,
  revokeOwnerStaticKey,
  ownerInvites,
  inviteAgent,
  removeOwnerInvite,
  ownerSecretAuthorizations,
  authorizeOwnerSecret,
  removeOwnerSecretAuthorization,
  ownerMcpAuthorisations,
  endOwnerMcpAuthorisation,
  ownerOwners,
  addOwner,
  removeOwner,
  ownerOrganisation,
  changeOrganisation,
  governancePlan,
  governanceApply,
  governanceExport,
  rotateKeys,
  ownerPlatforms,
  makePlatform,
  ownerPlatform,
  removePlatform,
  ...switchPlatforms,
  setOwnerPerPerson,
  ownerCallerIssuers,
  trustCallerIssuer,
  distrustCallerIssuer,
  platformTools,
  refreshPlatformTools,
  acceptPlatformTool,
  ownerPeople,
  confirmOwnerPerson,
  endOwnerPeople,
  ownerConnections,
  connect,
  replaceSecret,
  changeConnection,
  removeConnection,
  tryConnection,
  connectOAuth,
  disconnectOAuth,
  connectionCallback,
  ownConnectionCallback,
  ownerPolicies,
  makePolicy,
  ownerPolicy,
  changePolicy,
  policyVersions,
  assignPolicy,
  ownerGuardrails,
  changeGuardrails,
  ownerSimulate,
  agentOpenApi(() => ROUTES),
  ...metadata(() => ROUTES),
  ownerOpenApi(() => ROUTES),
];
