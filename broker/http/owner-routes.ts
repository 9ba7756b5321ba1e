/** The routes of the owner API that need a session. */
import type { Route } from './route.ts';
import {
  approveAccessRequest,
  denyAccessRequest,
  ownerAccessRequest,
  ownerAccessRequests,
} from './routes/owner/access-requests.ts';
import { agentLabels, handOverAgents, labelAgent } from './routes/owner/agent-owner.ts';
import { assignPolicy } from './routes/owner/agent-policy.ts';
import { ownerAgent, ownerAgentMoves, ownerAgents } from './routes/owner/agents.ts';
import {
  correctApproval,
  decideApprovals,
  denyApprovals,
  ownerApproval,
  ownerApprovals,
} from './routes/owner/approvals.ts';
import { decideManyApprovals } from './routes/owner/approvals-bulk.ts';
import { exportAudit, ownerAudit } from './routes/owner/audit.ts';
import { auditSinkRoutes } from './routes/owner/audit-sinks.ts';
import { bootstrapToken } from './routes/owner/bootstrap-token.ts';
import { builtInRoutes } from './routes/owner/built-in-platforms.ts';
import { distrustCallerIssuer, ownerCallerIssuers, trustCallerIssuer } from './routes/owner/caller-issuers.ts';
import { channelRoutes } from './routes/owner/channels.ts';
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
import { makeOwnerDemo, ownerDemo } from './routes/owner/demo.ts';
import { ownerEvents } from './routes/owner/events.ts';
import {
  governanceApplies,
  governanceApply,
  governanceBefore,
  governanceExport,
  governancePlan,
} from './routes/owner/governance.ts';
import { changeOwnerGrant, ownerGrants, removeOwnerGrants } from './routes/owner/grants.ts';
import { changeGuardrails, guardrailsVersions, ownerGuardrails } from './routes/owner/guardrails.ts';
import { ownerInstallation } from './routes/owner/installation.ts';
import { inviteAgent, ownerInvites, removeOwnerInvite } from './routes/owner/invites.ts';
import { ownerKeys, rotateKeys } from './routes/owner/keys.ts';
import { endOwnerMcpAuthorisation, ownerMcpAuthorisations } from './routes/owner/mcp-authorisations.ts';
import { ownerMe } from './routes/owner/me.ts';
import { noticeRoutes } from './routes/owner/notices.ts';
import { changeOrganisation, ownerOrganisation } from './routes/owner/organisation.ts';
import { closeOrganisation, createOrganisation, ownerOrganisations } from './routes/owner/organisations.ts';
import { addOwner, linkOfOwner, ownerOwners, removeOwner } from './routes/owner/owners.ts';
import { beginPasskeyAssertion, finishPasskeyAssertion } from './routes/owner/passkey-assertions.ts';
import { ownerPasskeys, removeOwnerPasskey, renameOwnerPasskey } from './routes/owner/passkeys.ts';
import { confirmOwnerPerson, endOwnerPeople, ownerPeople } from './routes/owner/people.ts';
import { setOwnerPerPerson } from './routes/owner/per-person.ts';
import { addOwnerPipeline, ownerPipelines, removeOwnerPipeline } from './routes/owner/pipelines.ts';
import { acceptPlatformTool, platformTools, refreshPlatformTools } from './routes/owner/platform-tools.ts';
import { platformRoutes } from './routes/owner/platforms.ts';
import { changePolicy, makePolicy, ownerPolicies, ownerPolicy, policyVersions } from './routes/owner/policies.ts';
import { exportOwnerLog, ownerLog, ownerLogConsistency } from './routes/owner/receipt-log.ts';
import {
  decideRegistrations,
  ownerRegistration,
  ownerRegistrations,
  rejectRegistrations,
} from './routes/owner/registrations.ts';
import { endOwnerRestored, ownerRestored } from './routes/owner/restored.ts';
import {
  authorizeOwnerSecret,
  ownerSecretAuthorizations,
  removeOwnerSecretAuthorization,
} from './routes/owner/secret-authorizations.ts';
import { ownerSimulate } from './routes/owner/simulate.ts';
import { ownerSimulateRecorded } from './routes/owner/simulate-recorded.ts';
import { ownerStandingApprovals, revokeOwnerStandingApproval } from './routes/owner/standing-approvals.ts';
import { issueOwnerStaticKey, ownerStaticKeys, revokeOwnerStaticKey } from './routes/owner/static-keys.ts';
import { ownerStats } from './routes/owner/stats.ts';
import { switchAllAgents } from './routes/owner/stop-agents.ts';
import { createOwnerAgent, removeOwnerWorkload, setOwnerWorkload } from './routes/owner/workloads.ts';

export const OWNER_ROUTES: readonly Route[] = [
  ownerMe,
  ownerAgents,
  // Must precede the route with an agent's id, which would match `suspend-all`.
  ...switchAllAgents,
  ownerAgent,
  agentLabels,
  handOverAgents,
  labelAgent,
  ...ownerAgentMoves,
  ownerGrants,
  changeOwnerGrant,
  removeOwnerGrants,
  ownerAudit,
  exportAudit,
  ownerStats,
  ownerDemo,
  makeOwnerDemo,
  ownerEvents,
  ownerApprovals,
  denyApprovals,
  decideManyApprovals,
  ownerApproval,
  correctApproval,
  ...decideApprovals,
  ownerStandingApprovals,
  revokeOwnerStandingApproval,
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
  rejectRegistrations,
  ownerRegistration,
  ...decideRegistrations,
  bootstrapToken,
  createOwnerAgent,
  setOwnerWorkload,
  removeOwnerWorkload,
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
  ownerOrganisations,
  createOrganisation,
  closeOrganisation,
  ownerOwners,
  addOwner,
  removeOwner,
  linkOfOwner,
  ownerPipelines,
  addOwnerPipeline,
  removeOwnerPipeline,
  ownerOrganisation,
  changeOrganisation,
  ownerRestored,
  endOwnerRestored,
  governancePlan,
  governanceApply,
  governanceExport,
  governanceApplies,
  governanceBefore,
  ownerInstallation,
  ownerKeys,
  rotateKeys,
  ...builtInRoutes,
  ...platformRoutes,
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
  ...channelRoutes,
  ...noticeRoutes,
  ...auditSinkRoutes,
  ownerPolicies,
  makePolicy,
  ownerPolicy,
  changePolicy,
  policyVersions,
  assignPolicy,
  ownerGuardrails,
  guardrailsVersions,
  changeGuardrails,
  ownerSimulate,
  ownerSimulateRecorded,
  ownerLog,
  exportOwnerLog,
  ownerLogConsistency,
];
