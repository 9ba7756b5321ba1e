/** Devices on which an owner gets Web Push notifications: each is a channel of that person, created by a browser. */

import { createHash, createPublicKey } from 'node:crypto';
import { type Changing, type ChangingOwner, recordChange, recordInTurn } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import { type ChannelRules, rulesProblem } from '../config-file/channels.ts';
import { readStoredChannel } from '../config-file/stored-settings.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { checkHost } from '../egress/target.ts';
import { tryChannel } from '../notify/try-channel.ts';
import type { StoredSubscription } from '../notify/web-push.ts';
import {
  addChannel,
  changeChannel,
  deleteChannel,
  deleteChannelNamed,
  findChannel,
  listChannelsOfOwner,
} from '../store/notice-channels.ts';
import type { Db } from '../store/store.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { ChangeRefused } from './refused.ts';

/** Limit per owner; each device gets every message. */
const MAX_DEVICES = 20;

export type ReadSubscription = {
  channel: NoticeChannelTable;
  device: string;
  /** Host of the push service. */
  service: string;
  /** SHA-256 of the endpoint in hex, by which a browser recognises itself in the list. */
  endpointHash: string;
  rules: ChannelRules;
  /** What cannot be read of the stored device, and is empty here. */
  unreadable: string | undefined;
};

/** The form of `PushSubscription.toJSON()`, with a name for the device. */
export type GivenSubscription = StoredSubscription & { device: string; rules: ChannelRules };

/** Begins names that no shared channel can have. */
const PREFIX = 'push:';
const hashOf = (endpoint: string): string => createHash('sha256').update(endpoint).digest('hex');

function read(channel: NoticeChannelTable): ReadSubscription {
  const { settings, rules, unreadable } = readStoredChannel(channel);
  const { device = 'Unknown device', service = '' } = settings;
  return {
    channel,
    device: String(device),
    service: String(service),
    endpointHash: channel.name.slice(PREFIX.length),
    rules,
    unreadable,
  };
}

/** Lists the owner's own devices, oldest first. */
export async function readSubscriptions(
  db: Db,
  owner: Pick<OwnerTable, 'organisation_id' | 'id'>,
): Promise<ReadSubscription[]> {
  return (await listChannelsOfOwner(db, owner)).filter(({ kind }) => kind === 'web_push').map(read);
}

const invalid = (detail: string) => new ChangeRefused('invalid_request', detail);

/** Throws ChangeRefused when nothing would ever be sent by these rules. */
function checkRules(rules: ChannelRules): void {
  const problem = rulesProblem(rules);
  if (problem !== undefined) throw invalid(`${problem}.`);
}

/** Throws ChangeRefused when nothing could be sent to the endpoint. The address that its name resolves to is checked with each message. */
function checkEndpoint(endpoint: string): URL {
  const url = new URL(endpoint);
  if (url.protocol !== 'https:') throw invalid('endpoint: is not https; send what PushSubscription.toJSON() gives.');
  if (url.username !== '' || url.password !== '') throw invalid('endpoint: must not contain a user name.');
  const rules = { allowPrivate: new Set<string>(), own: [] };
  if (!checkHost({ host: url.hostname, port: 443 }, rules, new Set([443])).ok)
    throw invalid('endpoint: is not a public address; push services are on the internet.');
  return url;
}

/** Throws ChangeRefused when the keys cannot come from a browser. */
function checkKeys({ p256dh, auth }: StoredSubscription['keys']): void {
  const point = Buffer.from(p256dh, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
  try {
    if (point.length !== 65 || point[0] !== 4 || x === undefined || y === undefined) throw new Error();
    createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
  } catch {
    throw invalid('keys.p256dh: is not a P-256 public key in base64url (65 bytes, uncompressed).');
  }
  if (Buffer.from(auth, 'base64url').length !== 16) throw invalid('keys.auth: is not 16 bytes in base64url.');
}

/**
 * Adds a device of the requesting owner. The same browser replaces its earlier subscription, even one of another owner, since it is the same screen.
 * Throws ChangeRefused, or AuditUnavailable: then nothing is changed.
 */
export async function addSubscription(
  services: Changing & Uses<'vault'>,
  by: ChangingOwner & { owner: Pick<OwnerTable, 'id' | 'organisation_id'> },
  { endpoint, keys, device, rules }: GivenSubscription,
): Promise<ReadSubscription> {
  const { vault, clock } = services.broker;
  const service = checkEndpoint(endpoint).hostname;
  checkKeys(keys);
  checkRules(rules);
  const { organisation_id: organisationId, id: ownerId } = by.owner;
  const id = uuidv4();
  const place = { table: 'notice_channels', organisationId, rowId: id } as const;
  const channel: NoticeChannelTable = {
    organisation_id: organisationId,
    id,
    name: `${PREFIX}${hashOf(endpoint)}`,
    kind: 'web_push',
    settings: JSON.stringify({ device, service }),
    secret: vault.seal(place, JSON.stringify({ endpoint, keys })),
    secret_reference: null,
    owner_id: ownerId,
    rules: JSON.stringify(rules),
    status: 'active',
    last_ok_at: null,
    last_error: null,
    origin: 'owner',
    created_at: clock(),
  };
  return await recordInTurn(services, by, { reason: 'push_device_added' }, async (tx, note) => {
    await deleteChannelNamed(tx, organisationId, channel.name);
    if ((await listChannelsOfOwner(tx, by.owner)).length >= MAX_DEVICES)
      throw new ChangeRefused('conflict', `You have ${MAX_DEVICES} devices already: remove one first.`);
    await addChannel(tx, channel);
    note({ device: { id, name: device, service } });
    return read(channel);
  });
}

/** Loads a device of the owner. Throws ChangeRefused, also for a device of somebody else. */
async function load(db: Db, owner: { id: string; organisation_id: string }, id: string): Promise<ReadSubscription> {
  const found = await findChannel(db, owner.organisation_id, id);
  if (found?.owner_id !== owner.id || found.kind !== 'web_push')
    throw new ChangeRefused('not_found', 'You have no such device.');
  return read(found);
}

/** Changes which notices the device gets, and when. Throws ChangeRefused; AuditUnavailable. */
export async function changeSubscription(
  services: Changing,
  by: ChangingOwner,
  { id, rules }: { id: string; rules: ChannelRules },
): Promise<ReadSubscription> {
  checkRules(rules);
  return await recordInTurn(services, by, { reason: 'push_device_changed' }, async (tx, note) => {
    const { channel, device, service } = await load(tx, by.owner, id);
    await changeChannel(tx, channel, { rules: JSON.stringify(rules) }, services.broker.clock());
    note({ device: { id, name: device, service } });
    return await load(tx, by.owner, id);
  });
}

/** Removes a device with its undelivered messages. Throws ChangeRefused; AuditUnavailable. */
export async function removeSubscription(services: Changing, by: ChangingOwner, id: string): Promise<void> {
  await recordInTurn(services, by, { reason: 'push_device_removed' }, async (tx, note) => {
    const { channel, device, service } = await load(tx, by.owner, id);
    await deleteChannel(tx, channel);
    note({ device: { id, name: device, service } });
  });
}

/** Sends a test notice immediately. Returns the result as a text of ours; a device that does not exist any more is removed. */
export async function testSubscription(
  services: Changing & Uses<'config' | 'baseUrl' | 'vault' | 'outbound' | 'publicOutbound'>,
  by: ChangingOwner,
  id: string,
): Promise<{ ok: boolean; detail: string }> {
  const { channel, device, service } = await load(services.broker.store.db, by.owner, id);
  const { kind, why } = await tryChannel(services.broker, { ...channel, name: device });
  const ok = kind === 'sent';
  await recordChange(services, by, { reason: 'push_device_tested' }, async (_tx, note) =>
    note({ device: { id, name: device, service }, ok }),
  );
  if (kind === 'gone')
    return { ok, detail: 'The browser withdrew it, so it was removed: turn it on again on that device.' };
  return {
    ok,
    detail: ok ? 'The push service accepted the test notice: it should arrive on the device in a moment.' : why,
  };
}
