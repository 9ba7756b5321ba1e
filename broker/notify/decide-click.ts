/** Handles a click on a button: makes the decision as for any owner, or refuses, which is recorded and shown to whoever clicked. */

import { whatIsSuspended } from '../approvals/asking-agent.ts';
import { decideHeld } from '../approvals/decide.ts';
import type { Replays } from '../approvals/replay.ts';
import { AuditUnavailable, MaybeRecorded } from '../audit/audit-unavailable.ts';
import { AuthorNotAllowed } from '../audit/author-role.ts';
import { eventRow } from '../audit/event-row.ts';
import type { Changing } from '../audit/record-change.ts';
import { mustSignInAgain } from '../auth/roles-by-groups.ts';
import type { Uses } from '../broker.ts';
import { peopleIn } from '../config-file/chat-channels.ts';
import { correlationId as newCorrelationId, uuidv7 } from '../crypto/ids.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import { findDelivery } from '../store/notice-deliveries.ts';
import { findOwnersByEmail } from '../store/organisations.ts';
import { DECIDING } from '../store/passkeys.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { isButtonFor, mayDecideOn, readButton } from './buttons.ts';
import type { Sending } from './channel.ts';
import type { Click } from './clicks.ts';
import { readable } from './message.ts';

type Services = Changing & { replays: Replays };
type Clicked = Pick<Click, 'token' | 'person' | 'place'>;

/** `why`: an error text of ours. `held`: the call in question, if it was identified beyond doubt. */
type Judged =
  | { ok: true; held: HeldCall; owner: OwnerTable; decision: 'approve' | 'deny' }
  | { ok: false; why: string; held?: HeldCall };

const NOT_OURS =
  'This button does not belong to this channel or to this request, or the request is no longer on record. The console shows what waits.';
const isSuspendedNow = (what: 'agent' | 'platform') =>
  `The ${what} is suspended, so the approved call would not be made, and could not be approved again. Resume the ${what} first.`;
const CORRECTED =
  'This call was corrected after this message was sent. Follow the link, review the call, and decide there.';

async function judge(
  { broker }: Services & Uses<'vault'>,
  channel: NoticeChannelTable,
  sending: Sending,
  click: Clicked,
): Promise<Judged> {
  const { db } = broker.store;
  const { organisation_id: organisationId, id: channelId } = channel;
  const button = readButton(click.token);
  const delivery = button && (await findDelivery(db, organisationId, button.deliveryId));
  if (!button || delivery?.channel_id !== channelId || delivery.event !== 'call_held')
    return { ok: false, why: NOT_OURS };
  const held = await findHeldCall(db, organisationId, delivery.subject_id);
  if (!held) return { ok: false, why: NOT_OURS };
  const bound = { channelId, deliveryId: delivery.id, approvalId: held.id, requestHash: held.request_hash };
  // A button is valid only for the request that its message shows; a correction invalidates it.
  if (!isButtonFor(broker, click.token, bound))
    return { ok: false, why: held.corrected_at === null ? NOT_OURS : CORRECTED };
  const [place] = (delivery.external_ref ?? '').split(' ');
  // A message that was sent but not marked as sent yet has no conversation on record, only the channel.
  if (place && place !== click.place)
    return { ok: false, why: 'This button was pressed in another conversation.', held };
  if (!(await mayDecideOn(broker, channel, held)))
    return { ok: false, why: 'This request has to be decided in the console: follow the link.', held };
  const people = peopleIn(sending.settings);
  const email = Object.hasOwn(people, click.person) ? people[click.person] : undefined;
  if (email === undefined)
    return { ok: false, why: 'You are not among the people of this channel: an admin adds you to them.', held };
  const owner = (await findOwnersByEmail(db, email)).find((one) => one.organisation_id === organisationId);
  if (!owner)
    return {
      ok: false,
      why: 'No owner has the address that the channel maps you to: an admin adds the owner, or corrects the address.',
      held,
    };
  if (!DECIDING.includes(owner.role))
    return { ok: false, why: 'Your role is viewer: an approver or an admin decides.', held };
  if (mustSignInAgain(owner, broker.clock()))
    return {
      ok: false,
      why: 'You last signed in to the console more than 30 days ago. Sign in once, then decide.',
      held,
    };
  // The message may be older than the suspension; pages and the command line show it before a person decides.
  const suspended = button.decision === 'approve' ? whatIsSuspended(held) : undefined;
  if (suspended !== undefined) return { ok: false, why: isSuspendedNow(suspended), held };
  return { ok: true, held, owner, decision: button.decision };
}

/**
 * Decides, or records why not. Returns the text to show to whoever clicked; undefined when the message itself will show it. Throws AuditUnavailable.
 */
async function act(
  services: Services & Uses<'vault'>,
  channel: NoticeChannelTable,
  sending: Sending,
  click: Clicked,
): Promise<string | undefined> {
  const correlationId = newCorrelationId();
  const judged = await judge(services, channel, sending, click);
  if (!judged.ok) return await refuse(services, channel, click, { ...judged, correlationId });
  const { held, owner, decision } = judged;
  const decided = await decideHeld(
    services,
    owner,
    held.id,
    {
      status: decision === 'approve' ? 'approved' : 'denied',
      how: 'channel',
      channel: { id: channel.id, name: channel.name, kind: channel.kind, user: click.person },
      requestHash: held.request_hash,
    },
    { correlationId },
  ).catch((error: unknown) => {
    if (!(error instanceof AuthorNotAllowed)) throw error;
    return { kind: 'not_allowed' } as const;
  });
  if (decided.kind === 'decided') return undefined;
  if (decided.kind === 'approved_in_part')
    return `You approved this call: ${decided.given} of ${decided.needed} people have. It waits until the others approve, too.`;
  const by = decided.kind === 'already_decided' && decided.by !== null ? ` by ${readable(decided.by)}` : '';
  const why =
    decided.kind === 'already_decided'
      ? `This call was ${decided.status} already${by}.`
      : decided.kind === 'changed'
        ? CORRECTED
        : decided.kind === 'not_allowed'
          ? 'You were removed, or your role was changed: an approver or an admin decides.'
          : 'This call has expired, so it can no longer be decided.';
  return await refuse(services, channel, click, { why, held, correlationId });
}

async function refuse(
  { broker, recorder }: Services,
  { id, organisation_id, name, kind }: NoticeChannelTable,
  { person }: Clicked,
  { why, held, correlationId }: { why: string; held?: HeldCall | undefined; correlationId: string },
): Promise<string> {
  const now = broker.clock();
  const row = eventRow({
    auditId: uuidv7(now),
    correlationId,
    createdAt: now,
    instanceId: broker.instanceId,
    organisationId: organisation_id,
    ...(held && {
      agent: { id: held.agent_id, agent_id: held.agent_public_id },
      approvalId: held.id,
      platform: held.platform_id,
    }),
    reason: 'button_refused',
    detail: why,
    flags: { click: { channel: id, name, kind, user: person } },
  });
  await recorder.record({ row, value: undefined });
  return why;
}

/** Handles a verified click. Never rejects: the service was answered already. */
export async function decideClick(
  services: Services & Uses<'vault'>,
  channel: NoticeChannelTable,
  sending: Sending,
  click: Click,
): Promise<void> {
  try {
    const text = await act(services, channel, sending, click).catch((error: unknown) => {
      if (!(error instanceof AuditUnavailable)) throw error;
      return error instanceof MaybeRecorded
        ? 'The store failed while the decision was being recorded, so it is unknown whether it is in force. Follow the link to see the current state.'
        : 'The decision could not be recorded, so nothing was decided. Try again in a moment.';
    });
    // Telegram shows the button as loading until it is answered, even without a text.
    if (text !== undefined || channel.kind === 'telegram') await click.tell(text ?? 'Decided.');
  } catch (error) {
    services.broker.log.error({ err: error, channel: channel.id }, 'a click on a button could not be handled');
  }
}
