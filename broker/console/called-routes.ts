/** The broker's routes that the console pages call (answers.ts has the types of their responses). */
import type { approveRequest } from '../http/routes/approve.ts';
import type { auditReceipt } from '../http/routes/audit-receipt.ts';
import type { consentDecision, consentRequest } from '../http/routes/consent.ts';
import type { ownerDiagnostics } from '../http/routes/diagnostics.ts';
import type { receiptKeys, version } from '../http/routes/discovery.ts';
import type {
  approveAccessRequest,
  denyAccessRequest,
  ownerAccessRequest,
  ownerAccessRequests,
} from '../http/routes/owner/access-requests.ts';
import type * as agentOwner from '../http/routes/owner/agent-owner.ts';
import type { assignPolicy } from '../http/routes/owner/agent-policy.ts';
import type { ownerAgent, ownerAgentMoves, ownerAgents } from '../http/routes/owner/agents.ts';
import type * as approvals from '../http/routes/owner/approvals.ts';
import type { decideManyApprovals } from '../http/routes/owner/approvals-bulk.ts';
import type { ownerAudit } from '../http/routes/owner/audit.ts';
import type * as sinks from '../http/routes/owner/audit-sinks.ts';
import type { bootstrapToken } from '../http/routes/owner/bootstrap-token.ts';
import type { builtInEntry, ownerBuiltInPlatforms } from '../http/routes/owner/built-in-platforms.ts';
import type {
  distrustCallerIssuer,
  ownerCallerIssuers,
  trustCallerIssuer,
} from '../http/routes/owner/caller-issuers.ts';
import type { connectOAuth, disconnectOAuth } from '../http/routes/owner/connection-oauth.ts';
import type * as connections from '../http/routes/owner/connections.ts';
import type { makeOwnerDemo, ownerDemo } from '../http/routes/owner/demo.ts';
import type * as governance from '../http/routes/owner/governance.ts';
import type { changeOwnerGrant, ownerGrants, removeOwnerGrants } from '../http/routes/owner/grants.ts';
import type { changeGuardrails, guardrailsVersions, ownerGuardrails } from '../http/routes/owner/guardrails.ts';
import type { ownerInstallation } from '../http/routes/owner/installation.ts';
import type { inviteAgent, ownerInvites, removeOwnerInvite } from '../http/routes/owner/invites.ts';
import type { ownerKeys } from '../http/routes/owner/keys.ts';
import type { endOwnerMcpAuthorisation, ownerMcpAuthorisations } from '../http/routes/owner/mcp-authorisations.ts';
import type { ownerMe, ownerSignInOptions } from '../http/routes/owner/me.ts';
import type { changeOrganisation, ownerOrganisation } from '../http/routes/owner/organisation.ts';
import type * as owners from '../http/routes/owner/owners.ts';
import type { beginPasskeyAssertion, finishPasskeyAssertion } from '../http/routes/owner/passkey-assertions.ts';
import type { ownerPasskeys, removeOwnerPasskey, renameOwnerPasskey } from '../http/routes/owner/passkeys.ts';
import type { confirmOwnerPerson, endOwnerPeople, ownerPeople } from '../http/routes/owner/people.ts';
import type { setOwnerPerPerson } from '../http/routes/owner/per-person.ts';
import type * as pipelines from '../http/routes/owner/pipelines.ts';
import type { acceptPlatformTool, platformTools, refreshPlatformTools } from '../http/routes/owner/platform-tools.ts';
import type * as platforms from '../http/routes/owner/platforms.ts';
import type * as policies from '../http/routes/owner/policies.ts';
import type {
  decideRegistrations,
  ownerRegistration,
  ownerRegistrations,
  rejectRegistrations,
} from '../http/routes/owner/registrations.ts';
import type { endOwnerRestored, ownerRestored } from '../http/routes/owner/restored.ts';
import type { ownerSignIn, ownerSignOut } from '../http/routes/owner/sessions.ts';
import type { ownerSimulate } from '../http/routes/owner/simulate.ts';
import type { ownerSimulateRecorded } from '../http/routes/owner/simulate-recorded.ts';
import type { ownerStandingApprovals, revokeOwnerStandingApproval } from '../http/routes/owner/standing-approvals.ts';
import type { issueOwnerStaticKey, ownerStaticKeys, revokeOwnerStaticKey } from '../http/routes/owner/static-keys.ts';
import type { ownerStats } from '../http/routes/owner/stats.ts';
import type { switchAllAgents } from '../http/routes/owner/stop-agents.ts';
import type * as workloads from '../http/routes/owner/workloads.ts';
import type {
  passkeyRegisterBegin,
  passkeyRegisterFinish,
  passkeySignBegin,
  passkeySignFinish,
} from '../http/routes/passkeys.ts';
import type { NoticeRoutes } from './notice-answers.ts';

/** The routes that the pages call, by method and path. */
export type CalledRoutes = NoticeRoutes & {
  'GET /owner/me': typeof ownerMe;
  'GET /owner/sign-in-options': typeof ownerSignInOptions;
  'POST /owner/sign-in': typeof ownerSignIn;
  'POST /owner/sign-out': typeof ownerSignOut;
  'GET /owner/standing-approvals': typeof ownerStandingApprovals;
  'DELETE /owner/standing-approvals/{id}': typeof revokeOwnerStandingApproval;
  'GET /owner/agents': typeof ownerAgents;
  'POST /owner/agents/suspend-all': (typeof switchAllAgents)[number];
  'POST /owner/agents/resume-all': (typeof switchAllAgents)[number];
  'GET /owner/agent-labels': typeof agentOwner.agentLabels;
  'POST /owner/hand-over': typeof agentOwner.handOverAgents;
  'POST /owner/agents/{id}/labels': typeof agentOwner.labelAgent;
  'POST /owner/agents/{id}/policy': typeof assignPolicy;
  'POST /owner/agents/{id}/bootstrap-token': typeof bootstrapToken;
  'GET /owner/invites': typeof ownerInvites;
  'POST /owner/invites': typeof inviteAgent;
  'DELETE /owner/invites/{id}': typeof removeOwnerInvite;
  'GET /owner/agents/{agent_id}/grants': typeof ownerGrants;
  'POST /owner/agents/{agent_id}/grants/{platform}': typeof changeOwnerGrant;
  'DELETE /owner/agents/{agent_id}/grants/{platform}': typeof removeOwnerGrants;
  'GET /owner/agents/{agent_id}/static-keys': typeof ownerStaticKeys;
  'POST /owner/agents/{agent_id}/static-keys': typeof issueOwnerStaticKey;
  'DELETE /owner/agents/{agent_id}/static-keys/{key}': typeof revokeOwnerStaticKey;
  'GET /owner/policies': typeof policies.ownerPolicies;
  'GET /owner/policies/{id}': typeof policies.ownerPolicy;
  'POST /owner/policies': typeof policies.makePolicy;
  'POST /owner/policies/{id}': typeof policies.changePolicy;
  'GET /owner/policies/{id}/versions': typeof policies.policyVersions;
  'GET /owner/guardrails': typeof ownerGuardrails;
  'POST /owner/guardrails': typeof changeGuardrails;
  'GET /owner/guardrails/versions': typeof guardrailsVersions;
  'POST /owner/simulate': typeof ownerSimulate;
  'POST /owner/simulate/recorded': typeof ownerSimulateRecorded;
  'GET /owner/owners': typeof owners.ownerOwners;
  'POST /owner/owners': typeof owners.addOwner;
  'POST /owner/owners/{id}/link': typeof owners.linkOfOwner;
  'DELETE /owner/owners/{id}': typeof owners.removeOwner;
  'POST /owner/agents': typeof workloads.createOwnerAgent;
  'POST /owner/agents/{id}/workload': typeof workloads.setOwnerWorkload;
  'DELETE /owner/agents/{id}/workload': typeof workloads.removeOwnerWorkload;
  'GET /owner/pipelines': typeof pipelines.ownerPipelines;
  'POST /owner/pipelines': typeof pipelines.addOwnerPipeline;
  'DELETE /owner/pipelines/{id}': typeof pipelines.removeOwnerPipeline;
  'GET /version': typeof version;
  'GET /owner/audit': typeof ownerAudit;
  'GET /owner/audit-sinks': typeof sinks.ownerAuditSinks;
  'GET /owner/audit-sink-kinds': typeof sinks.auditSinkKinds;
  'POST /owner/audit-sinks': typeof sinks.addAuditSink;
  'POST /owner/audit-sinks/{id}/settings': typeof sinks.changeSink;
  'DELETE /owner/audit-sinks/{id}': typeof sinks.removeSink;
  'POST /owner/audit-sinks/{id}/test': typeof sinks.trySink;
  'GET /v1/audit/{id}/receipt': typeof auditReceipt;
  'GET /.well-known/svc-receipt-keys.json': typeof receiptKeys;
  'GET /owner/stats': typeof ownerStats;
  'GET /owner/demo': typeof ownerDemo;
  'POST /owner/demo': typeof makeOwnerDemo;
  'GET /owner/installation': typeof ownerInstallation;
  'GET /owner/keys': typeof ownerKeys;
  'GET /owner/diagnostics': typeof ownerDiagnostics;
  'GET /owner/connections': typeof connections.ownerConnections;
  'POST /owner/connections': typeof connections.connect;
  'POST /owner/connections/{id}/secret': typeof connections.replaceSecret;
  'DELETE /owner/connections/{id}': typeof connections.removeConnection;
  'POST /owner/connections/{id}/test': typeof connections.tryConnection;
  'POST /owner/connections/{id}/settings': typeof connections.changeConnection;
  'POST /owner/connections/{id}/oauth/start': typeof connectOAuth;
  'POST /owner/connections/{id}/oauth/disconnect': typeof disconnectOAuth;
  'GET /owner/built-in-platforms': typeof ownerBuiltInPlatforms;
  'GET /owner/built-in-platforms/{name}/entry': typeof builtInEntry;
  'GET /owner/platforms': typeof platforms.ownerPlatforms;
  'POST /owner/platforms': typeof platforms.makePlatform;
  'POST /owner/platforms/{platform}/suspend': (typeof platforms.switchPlatforms)[number];
  'POST /owner/platforms/{platform}/resume': (typeof platforms.switchPlatforms)[number];
  'GET /owner/platforms/{platform}/tools': typeof platformTools;
  'POST /owner/platforms/{platform}/tools/refresh': typeof refreshPlatformTools;
  'POST /owner/platforms/{platform}/tools/{tool}/accept': typeof acceptPlatformTool;
  'GET /owner/people': typeof ownerPeople;
  'POST /owner/people/tokens/{id}/confirm': typeof confirmOwnerPerson;
  'POST /owner/people/end': typeof endOwnerPeople;
  'POST /owner/platforms/{platform}/update': typeof platforms.updatePlatform;
  'POST /owner/platforms/{platform}/per-person': typeof setOwnerPerPerson;
  'GET /owner/caller-issuers': typeof ownerCallerIssuers;
  'POST /owner/caller-issuers': typeof trustCallerIssuer;
  'POST /owner/caller-issuers/remove': typeof distrustCallerIssuer;
  'GET /owner/governance': typeof governance.governanceExport;
  'GET /owner/governance/applies': typeof governance.governanceApplies;
  'GET /owner/governance/applies/{id}/before': typeof governance.governanceBefore;
  'POST /owner/governance/plan': typeof governance.governancePlan;
  'POST /owner/governance/apply': typeof governance.governanceApply;
  'GET /owner/organisation': typeof ownerOrganisation;
  'POST /owner/organisation': typeof changeOrganisation;
  'GET /owner/restored': typeof ownerRestored;
  'POST /owner/restored/end': typeof endOwnerRestored;
  'GET /owner/mcp-authorisations': typeof ownerMcpAuthorisations;
  'DELETE /owner/mcp-authorisations/{id}': typeof endOwnerMcpAuthorisation;
  'GET /owner/passkeys': typeof ownerPasskeys;
  'POST /owner/passkeys/assert/begin': typeof beginPasskeyAssertion;
  'POST /owner/passkeys/assert/finish': typeof finishPasskeyAssertion;
  'POST /owner/passkeys/{id}/rename': typeof renameOwnerPasskey;
  'DELETE /owner/passkeys/{id}': typeof removeOwnerPasskey;
  'GET /owner/approvals': typeof approvals.ownerApprovals;
  'GET /owner/approvals/{id}': typeof approvals.ownerApproval;
  'POST /owner/approvals/{id}/correct': typeof approvals.correctApproval;
  'POST /owner/approvals/{id}/{verb}': (typeof approvals.decideApprovals)[number];
  'POST /owner/approvals/deny': typeof approvals.denyApprovals;
  'POST /owner/approvals/decide': typeof decideManyApprovals;
  'GET /owner/access-requests': typeof ownerAccessRequests;
  'GET /owner/access-requests/{id}': typeof ownerAccessRequest;
  'POST /owner/access-requests/{id}/{verb}': typeof approveAccessRequest | typeof denyAccessRequest;
  'GET /owner/registrations': typeof ownerRegistrations;
  'POST /owner/registrations/reject': typeof rejectRegistrations;
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

/** Routes of a single item by its id, whose path pattern would also match other, longer routes. */
export type CalledItemRoutes = {
  'POST /owner/agents/{id}/{verb}': (typeof ownerAgentMoves)[number];
  'GET /owner/agents/{id}': typeof ownerAgent;
  'GET /owner/platforms/{platform}': typeof platforms.ownerPlatform;
  'POST /owner/platforms/{platform}': typeof platforms.changePlatform;
  'DELETE /owner/platforms/{platform}': typeof platforms.removePlatform;
};
