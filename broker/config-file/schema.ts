/** The schema of a governance file. Every description is for people: editors and error messages show them. */
import { z } from 'zod';
import { CallerIssuers } from '../people/caller-issuer.ts';
import { BuiltinUse } from '../platforms/builtin.ts';
import { recordOf } from '../platforms/fields.ts';
import { Manifest } from '../platforms/manifest.ts';
import { PlatformId } from '../platforms/manifest-fields.ts';
import { AutoSuspend } from '../policy/auto-suspend.ts';
import { Labels } from '../policy/labels.ts';
import { PasskeyDeciders } from '../policy/passkey-deciders.ts';
import { Retention } from '../policy/retention.ts';
import { foldEmail } from '../store/organisations.ts';
import { SinkInFile, SinkName } from './audit-sinks.ts';
import { ChannelInFile, ChannelName } from './channels.ts';
import { ISSUED_BY } from './issued-by.ts';
import { RuleLimit } from './limit.ts';
import { RuleMask } from './mask.ts';
import { name, spacedName } from './name.ts';
import { SecretInParts } from './secret-in-parts.ts';
import { RuleAfter, selection } from './selection.ts';
import { GrantTerms } from './terms.ts';

/** The name of a connection, in files and in the owner API. */
export const ConnectionName = name('Name of a connection.');

const Email = z
  .email('write an e-mail address such as "ann@acme.example"')
  .max(254)
  .toLowerCase()
  .describe('E-mail address of an owner; case-insensitive.');

const Owner = z
  .strictObject({
    email: Email,
    role: z
      .enum(['admin', 'approver', 'viewer'])
      .describe('admin changes things, approver decides on held calls, viewer reads.'),
  })
  .describe('A person who governs agents.');

const suspended = z
  .literal(true)
  .optional()
  .describe('Suspends it until an owner resumes it. Absent: its status stays; a file never resumes an agent.');

/** The schema of a platform's entry for editors. `readManifests` parses entries. */
export const PlatformEntry = z
  .union([BuiltinUse.safeExtend({ suspended }), Manifest.safeExtend({ suspended })])
  .describe('A platform: a built-in one with changes, or a whole one.');

/** The idle limit of a connection. */
export const IdleSeconds = z
  .int()
  .min(1)
  .max(600)
  .describe(
    'How many seconds an answer may be silent before it is cut; unless said here, as many as the platform says, or 60 of a stream, 30 of an answer to POST /v1/actions, and 120 of a tool of an MCP server. More than 120 is also how long such an answer may take in all.',
  );

/** The wait limit of a connection. */
export const WaitSeconds = z
  .int()
  .min(0)
  .max(120)
  .describe('How many seconds a request on /proxy waits for a person if it does not say; 25 unless said here.');

const Connection = z
  .strictObject({
    platform: PlatformId.describe('The platform that it connects to.'),
    secret: SecretInParts.optional().describe(
      'Where the credential is found, or each part of one that has several. Without it the credential that the connection has stays.',
    ),
    default: z
      .boolean()
      .optional()
      .describe(
        'Whether grants that name no connection use this one. The only connection of a platform is the default.',
      ),
    idle_seconds: IdleSeconds.optional(),
    wait_seconds: WaitSeconds.optional(),
  })
  .describe('A credential for a platform, kept sealed by the broker.');

const decideIn = z
  .array(ChannelName)
  .min(1, 'is empty; leave it out')
  .max(20)
  .optional()
  .describe(
    'Of one that requires an approval: channels in which a button may decide, by a person of the channel. All rules that hold a call have to name the channel.',
  );

const approvers = z
  .int()
  .min(1)
  .max(5)
  .optional()
  .describe(
    'Of one that requires an approval: how many different people have to approve. 1 unless said here. One denial denies.',
  );

const PolicyRule = z
  .strictObject({
    name: spacedName('What the rule is called in audit rows; otherwise "rule 1", "rule 2" and so on.').optional(),
    effect: z
      .enum(['allow', 'require_approval', 'deny', 'mask'])
      .describe(
        'What happens to calls that match. The most severe matching rule wins; what none matches is denied. mask lets nothing pass: it is about what the calls are answered.',
      ),
    ...selection,
    mask: RuleMask,
    limit: RuleLimit,
    after: RuleAfter,
    decide_in: decideIn,
    approvers,
  })
  .describe('A rule of a policy. What is absent matches everything.');

const Guardrail = z
  .strictObject({
    name: spacedName('What the guardrail is called in audit rows.'),
    effect: z
      .enum(['require_approval', 'deny', 'suspend', 'mask'])
      .describe(
        'A guardrail only tightens: require_approval, deny, suspend (deny, and suspend the agent), or mask (what the calls are answered).',
      ),
    ...selection,
    mask: RuleMask,
    limit: RuleLimit,
    after: RuleAfter,
    remember: z
      .literal(true)
      .optional()
      .describe(
        'Of a rule that requires an approval: a standing approval may replace the decision. Without this member each such call has to be decided.',
      ),
    decide_in: decideIn,
    approvers,
  })
  .describe('A rule for all agents of the organisation.');

export const PolicyRules = z.array(PolicyRule).max(500).describe('The rules, in any order.');
export const Guardrails = z.array(Guardrail).max(500).describe('Rules for all agents; they can only tighten.');
export const PolicyName = name('Name of a policy.');

const Policy = z
  .strictObject({ rules: PolicyRules })
  .describe('What agents with this policy may do, within their grants.');

const Grants = z
  .union([GrantTerms, z.array(GrantTerms).min(1, 'is empty; remove the platform instead').max(50)])
  .describe('The terms on this platform, or a list of terms with different connections.');

const PublicKey = z
  .union(
    [
      z.strictObject({ file: z.string().min(1).max(1024).describe('Path of a PEM file, relative to this file.') }),
      z.strictObject({ pem: z.string().min(1).max(8192).describe('The PEM text itself.') }),
    ],
    { error: 'write { file: PATH }, or { pem: TEXT }' },
  )
  .describe(
    'RSA public key of the agent (PEM). Without one, `apply` prints a token with which the agent brings its own.',
  );

const Workload = z
  .strictObject(ISSUED_BY)
  .describe(
    'The workload whose tokens are accepted for the agent instead of tokens that it signs, such as a service account. With a workload and without a key, no bootstrap token is needed. A workload that a file has set is removed when the file no longer contains it.',
  );

const Agent = z
  .strictObject({
    // Not validated as an e-mail address, because an identity provider may use others, such as `bob@corp`.
    owner: z
      .string()
      .min(1)
      .max(254)
      .transform(foldEmail)
      .optional()
      .describe("The e-mail address of the owner who answers for the agent. Default: the organisation's first admin."),
    policy: name('The policy that it is under. Default: "default".').optional(),
    labels: Labels.optional().describe(
      'Words by which agents are grouped, such as "prod"; conditions read them as agent.labels. Absent, those that it has stay.',
    ),
    suspended,
    public_key: PublicKey.optional(),
    workload: Workload.optional(),
    grants: recordOf(PlatformId, Grants).optional().describe('What it may do, by platform. Default: nothing.'),
  })
  .describe('An agent that this file decides about.');

export const OrganisationName = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^\P{C}+$/u, 'write a name without control characters');

/** A whole governance file. An absent section changes nothing; a present section is complete. */
export const GovernanceDocument = z
  .strictObject({
    organisation: OrganisationName.optional().describe('Name of the organisation.'),
    publish_identity_documents: z
      .boolean()
      .optional()
      .describe("Whether anyone may read the DID documents of the organisation's agents."),
    auto_suspend: z
      .union([AutoSuspend, z.literal(false)])
      .optional()
      .describe('After how many refused calls an agent is suspended until an owner resumes it; false: never.'),
    retention: z
      .union([Retention, z.literal(false)])
      .optional()
      .describe('After how many days audit rows are deleted, by kind; false: never.'),
    passkey_deciders: PasskeyDeciders.optional(),
    owners: z
      .array(Owner)
      .max(1000)
      .optional()
      .describe('The people who govern. The owner of the first start is kept in addition.'),
    platforms: recordOf(PlatformId, PlatformEntry).optional().describe('The platforms, by the id that agents use.'),
    caller_issuers: CallerIssuers.optional(),
    connections: recordOf(ConnectionName, Connection).optional().describe('Credentials for platforms, by name.'),
    channels: recordOf(ChannelName, ChannelInFile)
      .optional()
      .describe('Channels on which owners are notified of pending items, by name.'),
    audit_sinks: recordOf(SinkName, SinkInFile).optional().describe('Where the audit is pushed to, by name.'),
    policies: recordOf(PolicyName, Policy)
      .optional()
      .describe('Policies, by name. "default" is there without being listed.'),
    guardrails: Guardrails.optional(),
    agents: recordOf(spacedName("The agent's name, by which this file knows it."), Agent)
      .optional()
      .describe('The agents, by name.'),
  })
  .describe('Governance of AI agents as code: what agent-broker plan and apply read.');

export type GovernanceDocument = z.infer<typeof GovernanceDocument>;
export type GovernanceDocumentInput = z.input<typeof GovernanceDocument>;
export type ConnectionEntry = z.infer<typeof Connection>;
export type AgentEntry = NonNullable<GovernanceDocument['agents']>[string];
