/** Channels on which owners are notified. Their secrets are sealed and never shown again. */

import { randomBytes } from 'node:crypto';
import { type Changing, type ChangingOwner, recordChange, recordInTurn } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import { type ChannelKindName, channelProblem, KINDS, secretProblem, splitChannel } from '../config-file/channels.ts';
import { readStoredChannel, type StoredChannel } from '../config-file/stored-settings.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { Secret } from '../crypto/secret.ts';
import { stopClicks } from '../notify/stop-clicks.ts';
import { tryChannel } from '../notify/try-channel.ts';
import { addChannel, changeChannel, deleteChannel, findChannel, listChannels } from '../store/notice-channels.ts';
import type { Db } from '../store/store.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import { ChangeRefused } from './refused.ts';

/** A channel, in the form that owners see. */
export type ReadChannel = { channel: NoticeChannelTable } & StoredChannel;

/** The settings in the form of their kind; see config-file/channels.ts. */
export type GivenChannel = { kind: ChannelKindName } & Record<string, unknown>;

const read = (channel: NoticeChannelTable): ReadChannel => ({ channel, ...readStoredChannel(channel) });

const unknownChannel = () => new ChangeRefused('not_found', 'The organisation has no such channel.');

/** Loads a channel. Throws ChangeRefused when there is none. */
async function load(db: Db, organisationId: string, id: string): Promise<NoticeChannelTable> {
  const found = await findChannel(db, organisationId, id);
  if (!found || found.owner_id !== null) throw unknownChannel();
  return found;
}

/** Lists the channels of the organisation, by name; devices of single owners are not included. */
export async function readChannels(db: Db, organisationId: string): Promise<ReadChannel[]> {
  return (await listChannels(db, organisationId)).filter(({ owner_id }) => owner_id === null).map(read);
}

/** Splits and validates settings and rules. Throws ChangeRefused. */
function splitSettings(given: GivenChannel): ReturnType<typeof splitChannel> {
  const taken = splitChannel(given);
  const wrong = channelProblem(taken);
  if (wrong !== undefined) throw new ChangeRefused('invalid_request', `${wrong}.`);
  return taken;
}

/** Generates a key that signs webhooks (Standard Webhooks: 24 to 64 bytes). */
const newWebhookSecret = () => new Secret(`whsec_${randomBytes(32).toString('base64')}`);

/** Throws ChangeRefused when the kind does not accept the secret. */
function checkChannelSecret(kind: ChannelKindName, secret: Secret | undefined): void {
  const problem = secret && secretProblem(kind, secret.reveal());
  if (problem !== undefined) throw new ChangeRefused('invalid_request', `secret: ${problem}.`);
  const { secret: wanted, secretIs }: { secret: string; secretIs: string } = KINDS[kind];
  if (wanted === 'needed' && secret === undefined)
    throw new ChangeRefused('invalid_request', `secret: is missing; it is ${secretIs}.`);
}

export type CreatedChannel = ReadChannel & {
  /** The secret that the broker generated; returned only once. */
  made: Secret | undefined;
};

/** Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function createChannel(
  services: Changing & Uses<'vault'>,
  by: ChangingOwner,
  { name, given, secret: brought }: { name: string; given: GivenChannel; secret: Secret | undefined },
): Promise<CreatedChannel> {
  const { vault, clock } = services.broker;
  const { kind, settings, rules } = splitSettings(given);
  const made = brought === undefined && KINDS[kind].secret === 'made' ? newWebhookSecret() : undefined;
  const secret = brought ?? made;
  checkChannelSecret(kind, secret);
  const organisationId = by.owner.organisation_id;
  const id = uuidv4();
  const channel: NoticeChannelTable = {
    organisation_id: organisationId,
    id,
    name,
    kind,
    settings: JSON.stringify(settings),
    secret: secret ? vault.seal({ table: 'notice_channels', organisationId, rowId: id }, secret.reveal()) : null,
    secret_reference: null,
    owner_id: null,
    rules: JSON.stringify(rules),
    status: 'active',
    last_ok_at: null,
    last_error: null,
    origin: 'owner',
    created_at: clock(),
  };
  await recordInTurn(services, by, { reason: 'channel_created' }, async (tx, note) => {
    if (!(await addChannel(tx, channel)))
      throw new ChangeRefused('conflict', `There is a channel "${name}" already: choose another name, or change it.`);
    note({ channel: { id, name, kind } });
  });
  return { ...read(channel), made };
}

/** Replaces settings and rules. The secret is kept unless another one is given. Throws ChangeRefused; AuditUnavailable. */
export async function changeChannelSettings(
  services: Changing & Uses<'vault'>,
  by: ChangingOwner,
  { id, given, secret }: { id: string; given: GivenChannel; secret: Secret | undefined },
): Promise<ReadChannel> {
  const { vault, clock } = services.broker;
  const organisationId = by.owner.organisation_id;
  const { kind, settings, rules } = splitSettings(given);
  return await recordInTurn(services, by, { reason: 'channel_changed' }, async (tx, note) => {
    const before = await load(tx, organisationId, id);
    if (before.kind !== kind)
      throw new ChangeRefused(
        'invalid_request',
        `kind: this channel is of kind "${before.kind}"; add another channel.`,
      );
    if (secret) checkChannelSecret(kind, secret);
    const place = { table: 'notice_channels', organisationId, rowId: id } as const;
    const change = {
      settings: JSON.stringify(settings),
      rules: JSON.stringify(rules),
      // A channel that was marked as gone may work with the new settings.
      status: 'active' as const,
      last_error: null,
      ...(secret && { secret: vault.seal(place, secret.reveal()), secret_reference: null }),
    };
    await changeChannel(tx, before, change, clock());
    note({ channel: { id, name: before.name, kind }, ...(secret && { secret_replaced: true }) });
    return read(await load(tx, organisationId, id));
  });
}

/** Removes a channel with its undelivered messages, and its webhook for clicks. Throws ChangeRefused; AuditUnavailable. */
export async function removeChannel(
  services: Changing & Uses<'config' | 'baseUrl' | 'vault' | 'outbound' | 'publicOutbound'>,
  by: ChangingOwner,
  id: string,
): Promise<void> {
  const removed = await recordInTurn(services, by, { reason: 'channel_removed' }, async (tx, note) => {
    const channel = await load(tx, by.owner.organisation_id, id);
    await deleteChannel(tx, channel);
    note({ channel: { id, name: channel.name, kind: channel.kind } });
    return channel;
  });
  await stopClicks(services.broker, removed);
}

/** Sends a test notice immediately; recorded in the audit because it uses the secret. Returns the result as a text of ours. */
export async function testChannel(
  services: Changing & Uses<'config' | 'baseUrl' | 'vault' | 'outbound' | 'publicOutbound'>,
  by: ChangingOwner,
  id: string,
): Promise<{ ok: boolean; detail: string }> {
  const channel = await load(services.broker.store.db, by.owner.organisation_id, id);
  const { kind, why } = await tryChannel(services.broker, channel);
  const ok = kind === 'sent';
  await recordChange(services, by, { reason: 'channel_tested' }, async (_tx, note) =>
    note({ channel: { id, name: channel.name, kind: channel.kind }, ok }),
  );
  return { ok, detail: why };
}
