/** Lists all routes. */
import { OWNER_ROUTES } from './owner-routes.ts';
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
import { metrics } from './routes/metrics.ts';
import { myConnectionRoutes } from './routes/my-connections.ts';
import { clickRoutes } from './routes/notify.ts';
import { oauthRoutes } from './routes/oauth.ts';
import { oauthClientDocument } from './routes/oauth-client.ts';
import { agentOpenApi } from './routes/openapi.ts';
import { ownerSignInOptions } from './routes/owner/me.ts';
import { oidcCallback, oidcStart } from './routes/owner/oidc.ts';
import { oidcLogout } from './routes/owner/oidc-logout.ts';
import { ownerOpenApi } from './routes/owner/openapi.ts';
import { ownerLink, ownerSignIn, ownerSignOut, ownerToken, proveLocal } from './routes/owner/sessions.ts';
import { passkeyRegisterBegin, passkeyRegisterFinish, passkeySignBegin, passkeySignFinish } from './routes/passkeys.ts';
import { personConsentRoutes } from './routes/person-consent.ts';
import { proxyRoutes } from './routes/proxy.ts';
import { receiptLogCheckpoint, receiptLogKeys, receiptLogTile } from './routes/receipt-log.ts';
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
  metrics,
  ready,
  live,
  version,
  issuingKeys,
  receiptKeys,
  receiptLogKeys,
  receiptLogCheckpoint,
  receiptLogTile,
  attestation,
  oauthClientDocument,
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
  ...clickRoutes,
  labMcp,
  proveLocal,
  ownerToken,
  ownerLink,
  ownerSignIn,
  ownerSignOut,
  ownerSignInOptions,
  oidcStart,
  oidcCallback,
  oidcLogout,
  ...OWNER_ROUTES,
  agentOpenApi(() => ROUTES),
  ...metadata(() => ROUTES),
  ownerOpenApi(() => ROUTES),
];
