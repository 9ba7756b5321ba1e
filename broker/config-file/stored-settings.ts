/** Reads stored settings and rules of channels and audit sinks with the schemas that validated them. */
import type { z } from 'zod';
import { SealError } from '../crypto/seal.ts';
import { readStored } from '../store/stored-json.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import type { AuditSinkTable } from '../store/tables/receipt-log.ts';
import type { Vault } from '../vault.ts';
import { makesSecret, type SinkKindName, STORED_SETTINGS, sinkSecretProblem } from './audit-sinks.ts';
import { CHANNEL_FORMS, ChannelRules } from './channels.ts';

type Settings = Record<string, unknown>;

/** Parses settings by kind. Throws for a kind that this version does not support. */
function readSettings(
  forms: Readonly<Record<string, z.ZodType<Settings>>>,
  kind: string,
  text: string,
  whose: string,
): Settings {
  const form = Object.hasOwn(forms, kind) ? forms[kind] : undefined;
  if (form === undefined) throw new Error(`This version of agent-broker does not know the kind ${kind} of ${whose}.`);
  return readStored(form, text, `settings of ${whose}`);
}

/** @throws Error that names the channel, when the column holds something else */
export const channelSettings = ({
  id,
  kind,
  settings,
}: Pick<NoticeChannelTable, 'id' | 'kind' | 'settings'>): Settings =>
  readSettings(CHANNEL_FORMS, kind, settings, `channel ${id}`);

/** @throws Error that names the channel, when the column holds something else */
export const channelRules = ({ id, rules }: Pick<NoticeChannelTable, 'id' | 'rules'>): ChannelRules =>
  readStored(ChannelRules, rules, `rules of channel ${id}`);

/** `unreadable`: what cannot be read of the stored channel, and is empty here. Nothing is sent on such a channel. */
export type StoredChannel = { settings: Settings; rules: ChannelRules; unreadable: string | undefined };

/** Reads a channel for display: what cannot be read of it must not hide it, or the other channels. */
export function readStoredChannel(
  channel: Pick<NoticeChannelTable, 'id' | 'kind' | 'settings' | 'rules'>,
): StoredChannel {
  const settings = readable(() => channelSettings(channel));
  const rules = readable(() => channelRules(channel));
  const unreadable = [...(settings ? [] : ['settings']), ...(rules ? [] : ['rules'])].join(' and ');
  return { settings: settings ?? {}, rules: rules ?? {}, unreadable: unreadable === '' ? undefined : unreadable };
}

function readable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Says what an owner can do about a channel that cannot be read. `whose`: such as `the channel`. */
export const unreadableText = (unreadable: string, whose: string): string =>
  `The stored ${unreadable} cannot be read, so no notices are sent here: set them again, or remove ${whose}. If a newer version of Agent Broker wrote them, run that version.`;

/** The settings of an audit sink; undefined when they cannot be read: then nothing is sent to it, and it must not hide the other sinks. */
export const sinkSettings = ({
  id,
  kind,
  settings,
}: Pick<AuditSinkTable, 'id' | 'kind' | 'settings'>): Settings | undefined =>
  readable(() => readSettings(STORED_SETTINGS, kind, settings, `audit sink ${id}`));

/**
 * Whether a sink keeps its secret with other settings of its kind: a key that signs must not be sent in a header, or the reverse. Where the stored
 * settings cannot be read, the form of the secret shows which of the two it is.
 */
export function keepsSinkSecret(
  vault: Pick<Vault, 'open'>,
  sink: Pick<AuditSinkTable, 'organisation_id' | 'id' | 'kind' | 'settings' | 'secret'>,
  settings: Settings,
): boolean {
  const kind = sink.kind as SinkKindName;
  const before = sinkSettings(sink);
  const signed = before || kind !== 'webhook' ? makesSecret(kind, before ?? {}) : isSigningKey(vault, sink);
  return signed === makesSecret(kind, settings);
}

/** Undefined: the secret is missing, or cannot be opened. */
function isSigningKey(
  vault: Pick<Vault, 'open'>,
  { organisation_id: organisationId, id: rowId, secret }: Pick<AuditSinkTable, 'organisation_id' | 'id' | 'secret'>,
): boolean | undefined {
  if (secret === null) return undefined;
  try {
    const opened = vault.open({ table: 'audit_sinks', organisationId, rowId }, secret).toString('utf8');
    return sinkSecretProblem('webhook', {}, opened) === undefined;
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    return undefined;
  }
}
