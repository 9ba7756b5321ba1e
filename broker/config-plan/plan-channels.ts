/** Plans channels on which owners are notified: their secrets are compared in memory and stored sealed. */

import { type ChannelEntry, channelProblem, KINDS, secretProblem, splitChannel } from '../config-file/channels.ts';
import { difference, sameJson } from '../config-file/differences.ts';
import { entriesOf } from '../config-file/governance.ts';
import { missingIn, secretIn, secretKey } from '../config-file/secrets.ts';
import { readStoredChannel } from '../config-file/stored-settings.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Secret } from '../crypto/secret.ts';
import { addChannel, changeChannel, deleteChannel } from '../store/notice-channels.ts';
import type { Db } from '../store/store.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import { addProblem, addStep, holdsSecret, leaveOut, type Made, type Planning } from './planning.ts';

/** The section is complete: channels that it does not list are removed. Channels of one person are never in a file, and stay. */
export function planChannels(planning: Planning): void {
  const { present } = planning;
  const { channels } = planning.governance.document;
  if (channels === undefined) return;
  for (const channel of present.channels) {
    const { name, kind } = channel;
    if (Object.hasOwn(channels, name)) continue;
    const details = [`kind: ${kind}`, 'its secret is removed with it'];
    addStep(planning, { action: 'delete', kind: 'channel', name, details }, (db, made) => remove(db, made, channel));
  }
  for (const [name, entry] of entriesOf(channels)) {
    const known = present.channels.find((channel) => channel.name === name);
    planChannel(planning, name, entry, known);
  }
}

function planChannel(
  planning: Planning,
  name: string,
  entry: ChannelEntry,
  known: NoticeChannelTable | undefined,
): void {
  const { organisationId, vault, now, governance } = planning;
  const channel = splitChannel(entry);
  const { kind, settings, rules } = channel;
  const wrong = channelProblem(channel);
  if (wrong !== undefined) addProblem(planning, ['channels', name], `${wrong}.`);
  const isOther = known !== undefined && known.kind !== kind;
  const secret = secretOf(planning, name, entry, isOther ? undefined : known);
  const place = {
    table: 'notice_channels' as const,
    organisationId,
    rowId: isOther ? uuidv4() : (known?.id ?? uuidv4()),
  };
  // A stored secret that cannot be opened is replaced by the one that came with the file.
  const replaced =
    secret !== undefined && (!known?.secret || isOther || holdsSecret(vault, place, known.secret, secret) !== true);
  const named = entry.secret && governance.origin === 'file' ? secretKey(entry.secret) : undefined;
  const reference = named ?? (isOther ? null : (known?.secret_reference ?? null));
  if (!entry.secret && (isOther || !known?.secret) && KINDS[kind].secret !== 'optional')
    addProblem(
      planning,
      ['channels', name],
      `has no secret: name ${KINDS[kind].secretIs} with { env: NAME } or { file: PATH }.`,
    );
  const stored = known && readStoredChannel(known);
  // What cannot be read is written again.
  const before = stored?.unreadable === undefined ? stored : undefined;
  const details = [
    ...difference('kind', known?.kind, kind),
    ...(before && sameJson(before.settings, settings) ? [] : difference('settings', before?.settings, settings)),
    ...(before && sameJson(before.rules, rules) ? [] : difference('rules', before?.rules, rules)),
    ...difference('secret from', known?.secret_reference, reference),
    ...(replaced && known?.secret ? ['secret: changed'] : []),
  ];
  if (details.length === 0 && !replaced && known) return;
  const row = {
    kind,
    settings: JSON.stringify(settings),
    rules: JSON.stringify(rules),
    secret_reference: reference,
    // New settings have not been refused yet.
    status: 'active',
    last_error: null,
    origin: 'governance',
    ...(replaced && { secret: vault.seal(place, secret.reveal()) }),
  } as const;
  addStep(planning, { action: known ? 'update' : 'create', kind: 'channel', name, details }, async (db, made) => {
    const ref = { organisation_id: organisationId, id: place.rowId };
    if (known && !isOther) return await changeChannel(db, ref, row, now);
    // Another kind is another channel: its earlier messages cannot be edited through this one.
    if (known) await remove(db, made, known);
    await addChannel(db, { secret: null, ...row, ...ref, name, owner_id: null, last_ok_at: null, created_at: now });
  });
}

async function remove(db: Db, made: Made, channel: NoticeChannelTable): Promise<void> {
  await deleteChannel(db, channel);
  made.removedChannels.push(channel);
}

function secretOf(
  planning: Planning,
  name: string,
  entry: ChannelEntry,
  known: NoticeChannelTable | undefined,
): Secret | undefined {
  if (!entry.secret || !planning.comparesSecrets) return undefined;
  const key = secretKey(entry.secret);
  const secret = secretIn(planning.resolved, entry.secret);
  if (!secret) {
    const isStored = known?.secret != null && known.secret_reference === key;
    leaveOut(planning, ['channels', name, 'secret'], missingIn(planning.resolved, entry.secret), isStored);
    return undefined;
  }
  const wrong = secretProblem(entry.kind, secret.reveal());
  if (wrong === undefined) return secret;
  addProblem(planning, ['channels', name, 'secret'], `the value of ${key}: ${wrong}.`);
  return undefined;
}
