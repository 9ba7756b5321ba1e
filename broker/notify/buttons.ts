/**
 * Buttons that let a person decide a held call in the message about it. A button is a capability for one decision on one request, from one message of
 * one channel. It is not sufficient by itself: the channel's signature proves who pressed it (clicks.ts), and that person has to be an owner who may
 * decide.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { peopleIn, slackSecret } from '../config-file/chat-channels.ts';
import { deriveKey, type MasterKey } from '../crypto/master-key.ts';
import { decodeBase64url } from '../crypto/strict-decoding.ts';
import { findApproval } from '../store/approvals.ts';
import { findOrganisation } from '../store/organisations.ts';
import { readStored } from '../store/stored-json.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import type { NoticeChannelTable, NoticeDeliveryTable } from '../store/tables/notices.ts';
import type { Sending } from './channel.ts';
import type { Message } from './message.ts';

/* version 1 | decision 1 | the delivery's uuid 16 | HMAC-SHA-256 truncated to 16: 46 characters in base64url; Telegram allows 64 bytes */
const VERSION = 1;
const DECISIONS = { approve: 1, deny: 2 } as const;
export type ByButton = keyof typeof DECISIONS;
const DELIVERY = 2;
const MAC = 18;
const LENGTH = 34;

/** What a button is bound to. */
export type Bound = { channelId: string; deliveryId: string; approvalId: string; requestHash: string };

/** Parses the unverified content of a button; undefined when it is not one. */
export function readButton(token: string): { decision: ByButton; deliveryId: string } | undefined {
  const bytes = decodeBase64url(token);
  if (bytes?.length !== LENGTH || bytes[0] !== VERSION) return undefined;
  const decision = (['approve', 'deny'] as const).find((one) => DECISIONS[one] === bytes[1]);
  const hex = bytes.toString('hex', DELIVERY, MAC);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return decision && { decision, deliveryId: parts.join('-') };
}

/** Whether this broker made the button, for exactly this channel, delivery and request. */
export function isButtonFor({ vault }: Pick<Broker, 'vault'>, token: string, bound: Bound): boolean {
  const bytes = decodeBase64url(token);
  const said = readButton(token);
  if (!bytes || said?.deliveryId !== bound.deliveryId.toLowerCase()) return false;
  const { current, previous } = vault.masterKeys();
  return [current, ...previous].some((key) =>
    timingSafeEqual(macOf(key, bytes.subarray(0, MAC), bound), bytes.subarray(MAC)),
  );
}

function makeButton(key: MasterKey, decision: ByButton, bound: Bound): string {
  const head = Buffer.concat([Buffer.from([VERSION, DECISIONS[decision]]), uuidBytes(bound.deliveryId)]);
  return Buffer.concat([head, macOf(key, head, bound)]).toString('base64url');
}

/** All parts have fixed lengths, so the concatenation is unambiguous. */
const macOf = (key: MasterKey, head: Buffer, { channelId, approvalId, requestHash }: Bound): Buffer =>
  createHmac('sha256', deriveKey(key, 'button of a channel'))
    .update(head)
    .update(uuidBytes(channelId))
    .update(uuidBytes(approvalId))
    .update(requestHash)
    .digest()
    .subarray(0, LENGTH - MAC);

const uuidBytes = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex');

/** Whether clicks on this channel can be verified, and at least one person is listed who may click. */
export function takesClicks(kind: string, { settings, secret }: Pick<Sending, 'settings' | 'secret'>): boolean {
  if (Object.keys(peopleIn(settings)).length === 0 || secret === undefined) return false;
  return kind === 'telegram' || (kind === 'slack' && slackSecret(secret.reveal()).signing_secret !== undefined);
}

/** Returns the URL to which the service posts clicks. */
export const clicksUrl = (
  { baseUrl }: Pick<Broker, 'baseUrl'>,
  { kind, id }: Pick<NoticeChannelTable, 'kind' | 'id'>,
): string => `${baseUrl}/notify/${kind}/${id}`;

const Names = z.array(z.string());

/**
 * Whether a held call may be decided on this channel: all rules that held it allow the channel, and the organisation requires no verified passkey.
 */
export async function mayDecideOn(
  { store }: Pick<Broker, 'store'>,
  channel: Pick<NoticeChannelTable, 'name'>,
  { organisation_id, id, decide_in }: Pick<ApprovalTable, 'organisation_id' | 'id' | 'decide_in'>,
): Promise<boolean> {
  if (decide_in === null || !readStored(Names, decide_in, `channels of held call ${id}`).includes(channel.name))
    return false;
  return (await findOrganisation(store.db, organisation_id))?.require_user_verification === 0;
}

/** Returns the buttons of a message; undefined: the message only links to the page. */
export async function buttonsFor(
  broker: Pick<Broker, 'store' | 'vault'>,
  channel: NoticeChannelTable,
  { id: deliveryId, event, organisation_id, subject_id }: NoticeDeliveryTable,
  sending: Sending,
): Promise<Message['buttons']> {
  if (event !== 'call_held' || !takesClicks(channel.kind, sending)) return undefined;
  const approval = await findApproval(broker.store.db, organisation_id, subject_id);
  if (!approval || !(await mayDecideOn(broker, channel, approval))) return undefined;
  const bound = { channelId: channel.id, deliveryId, approvalId: approval.id, requestHash: approval.request_hash };
  const key = broker.vault.masterKeys().current;
  return { approve: makeButton(key, 'approve', bound), deny: makeButton(key, 'deny', bound) };
}
