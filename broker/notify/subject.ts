/** Reads the current state of what a notice is about. */

import { hasEnded } from '../approvals/asking-agent.ts';
import { sentenceOfHeld } from '../approvals/held-sentence.ts';
import { failureIn } from '../approvals/sealed.ts';
import { statusAt } from '../audit/approval-state.ts';
import type { Broker } from '../broker.ts';
import { visibleLine } from '../console/static/visible.js';
import { platformNames } from '../facts/platform-names.ts';
import type { Instant } from '../policy/facts.ts';
import type { Part, Sentence } from '../sentences/part.ts';
import { valuePart } from '../sentences/readable.ts';
import { findAccessRequest } from '../store/access-requests.ts';
import { findAgent } from '../store/agents.ts';
import { findConnection } from '../store/connections.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import { findPasskeyOf } from '../store/passkeys.ts';
import { findRegistration } from '../store/registrations.ts';
import type { Db } from '../store/store.ts';
import type { DeliveryEvent } from '../store/tables/notices.ts';
import { type Approvals, approvedOf, progressOf } from './held-progress.ts';
import { cutText, readable } from './message.ts';

export type Subject = {
  /** Whether an owner still has to act. */
  waits: boolean;
  sentence: Sentence;
  /** `id`: the `agt_` id. `parent`: the name of the parent of a child, whose own name the parent chose; null: it is no child. */
  agent: { id: string; name: string; parent: string | null } | undefined;
  platform: { id: string; name: string } | undefined;
  until: Instant | undefined;
  /** Path of the page where an owner decides, or reads more. */
  path: string;
  /** The result, once the subject is settled. */
  outcome: string | undefined;
  /** Whether the subject is an approved call that was not made, or failed; `outcome` says why. */
  hasFailed?: boolean;
  /** Only of a pending call that several people have to approve. */
  approvers?: Approvals;
  /** When an owner corrected the call last. */
  correctedAt?: Instant;
  /** What has happened to the call while it waits, in words. */
  progress?: readonly string[];
  /** The only owner whom it concerns: of owners' own devices, only those of this owner are notified. */
  ofOwner?: string;
};

async function platformOf(db: Db, organisationId: string, id: string): Promise<{ id: string; name: string }> {
  const nameOf = await platformNames(db, organisationId, [id]);
  return { id, name: nameOf(id) };
}

type Ref = { organisation_id: string; event: DeliveryEvent; subject_id: string };

const sentence = (...parts: Part[]): Sentence => ({ parts, template: null });

/**
 * Returns the result of a decision in words. `by`: e-mail addresses of those who decided; null: not known any more. `ended`: whether the agent has
 * ended, and what was pending with it.
 */
function outcomeOf(status: string, by: readonly (string | null)[], { ended }: { ended: boolean }): string | undefined {
  if (status === 'pending') return undefined;
  if (status === 'expired') return ended ? 'Ended with its agent' : 'Expired: nobody decided in time';
  const verb = status === 'approved' ? 'Approved' : 'Denied';
  const names = by.flatMap((address) => (address === null ? [] : [readable(address)]));
  return names.length === 0 ? verb : `${verb} by ${names.join(', ')}`;
}

/** In characters; the page of the call shows the whole error. */
const MAX_ERROR_LENGTH = 300;

/** Returns what became of an approved call that was not made, or failed: the continuation of `Approved by …`. Undefined: nothing failed so far. */
function failureOf({ exec_state, executed_at, execution_error, result_summary }: HeldCall): string | undefined {
  if (exec_state === 'done') {
    const failed = failureIn(result_summary ?? '');
    return failed && ` and made, but the platform answered ${failed}`;
  }
  if (execution_error === null) return undefined;
  const error = visibleLine(cutText(execution_error, MAX_ERROR_LENGTH)).replace(/\.$/, '');
  if (exec_state === 'unknown') return `, ${error}`;
  return `${executed_at === null ? ', but not made' : ' and made, but'}: ${error}`;
}

/** Reads the subject of a notice; undefined when it does not exist any more. */
export async function readSubject(
  broker: Pick<Broker, 'clock' | 'log' | 'vault'>,
  db: Db,
  ref: Ref,
): Promise<Subject | undefined> {
  return await READERS[ref.event](broker, db, ref);
}

type Reader = (broker: Pick<Broker, 'clock' | 'log' | 'vault'>, db: Db, ref: Ref) => Promise<Subject | undefined>;

const readHeldCall: Reader = async (broker, db, { organisation_id, subject_id }) => {
  const held = await findHeldCall(db, organisation_id, subject_id);
  if (!held) return undefined;
  const status = statusAt(held, broker.clock());
  const waits = status === 'pending';
  const approved = await approvedOf(db, held);
  const approvers = waits && held.approvers !== null ? { needed: held.approvers, approved } : undefined;
  const before = status === 'approved' ? approved.map(({ email }) => email) : [];
  const outcome = outcomeOf(status, [...before, held.decided_by_email], { ended: hasEnded(held) });
  const failure = failureOf(held);
  return {
    waits,
    sentence: sentenceOfHeld(broker, held),
    agent: { id: held.agent_public_id, name: held.agent_name, parent: held.parent_name },
    platform: await platformOf(db, organisation_id, held.platform_id),
    until: held.expires_at,
    path: `/approve/${held.id}`,
    outcome: outcome && failure ? `${outcome}${failure}` : outcome,
    hasFailed: failure !== undefined,
    ...(approvers && { approvers }),
    ...(held.corrected_at !== null && { correctedAt: held.corrected_at }),
    ...(waits && { progress: progressOf(held, approvers) }),
  };
};

const READERS: Readonly<Record<DeliveryEvent, Reader>> = {
  call_held: readHeldCall,
  call_changed: readHeldCall,
  access_requested: async (broker, db, { organisation_id, subject_id }) => {
    const request = await findAccessRequest(db, organisation_id, subject_id);
    if (!request) return undefined;
    const status = statusAt(request, broker.clock());
    const asked = request.scope === '' ? 'access' : request.scope;
    const platform = await platformOf(db, organisation_id, request.platform_id);
    return {
      waits: status === 'pending',
      sentence: sentence(
        { text: 'Asks for ' },
        valuePart(asked, { strong: true }),
        { text: ' on ' },
        valuePart(platform.name),
      ),
      agent: { id: request.agent_public_id, name: request.agent_name, parent: request.parent_name },
      platform,
      until: request.expires_at,
      path: '/console',
      outcome: outcomeOf(status, [request.decided_by_email], { ended: hasEnded(request) }),
    };
  },
  registration_waiting: async (broker, db, { organisation_id, subject_id }) => {
    const registration = await findRegistration(db, organisation_id, subject_id);
    if (!registration) return undefined;
    const status = statusAt(registration, broker.clock());
    return {
      waits: status === 'pending',
      sentence: sentence(
        { text: 'Somebody asks to register the agent ' },
        valuePart(registration.agent_name, { quoted: true }),
      ),
      agent: undefined,
      platform: undefined,
      until: registration.expires_at,
      path: '/console',
      outcome: outcomeOf(status, [registration.decided_by_email], { ended: false }),
    };
  },
  agent_suspended: async (_broker, db, { organisation_id, subject_id }) => {
    const agent = await findAgent(db, organisation_id, subject_id);
    if (!agent) return undefined;
    const waits = agent.status === 'suspended';
    const parent = agent.parent_id === null ? undefined : await findAgent(db, organisation_id, agent.parent_id);
    const detail =
      waits && agent.status_detail ? [{ text: ': ' }, valuePart(agent.status_detail, { quoted: true })] : [];
    return {
      waits,
      sentence: sentence(
        { text: 'The agent ' },
        valuePart(agent.name, { strong: true }),
        { text: ' was suspended' },
        ...detail,
      ),
      agent: { id: agent.agent_id, name: agent.name, parent: parent?.name ?? null },
      platform: undefined,
      until: undefined,
      path: `/console/agents/${agent.agent_id}`,
      outcome: waits ? undefined : `The agent is ${agent.status} now`,
    };
  },
  connection_broken: async (_broker, db, { organisation_id, subject_id }) => {
    const connection = await findConnection(db, organisation_id, subject_id);
    if (!connection) return undefined;
    const isRefused = connection.status === 'reauth_needed';
    const waits = isRefused || connection.attention === 1;
    const platform = await platformOf(db, organisation_id, connection.platform_id);
    return {
      waits,
      sentence: sentence(
        { text: 'The connection ' },
        valuePart(connection.label, { strong: true }),
        { text: ' to ' },
        valuePart(platform.name),
        {
          text:
            waits && !isRefused
              ? ' gets no token from its authorization server'
              : ' has to be connected again: the platform refused its credential',
        },
      ),
      agent: undefined,
      platform,
      until: undefined,
      path: '/console/connections',
      outcome: waits ? undefined : 'The connection works again',
    };
  },
  passkey_added: async (_broker, db, { organisation_id, subject_id }) => {
    const passkey = await findPasskeyOf(db, organisation_id, subject_id);
    if (!passkey) return undefined;
    return {
      waits: true,
      sentence: sentence(
        { text: 'The passkey ' },
        valuePart(passkey.device_name, { quoted: true }),
        { text: ' was added for ' },
        valuePart(passkey.email, { strong: true }),
        { text: '. If that was somebody else, remove it' },
      ),
      agent: undefined,
      platform: undefined,
      until: undefined,
      path: '/console/passkeys',
      outcome: undefined,
      ofOwner: passkey.owner_id,
    };
  },
};
