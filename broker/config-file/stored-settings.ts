/** Reads stored settings and rules of channels and audit sinks with the schemas that validated them. */
import type { z } from 'zod';
import { readStored } from '../store/stored-json.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import type { AuditSinkTable } from '../store/tables/receipt-log.ts';
import { STORED_SETTINGS } from './audit-sinks.ts';
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

/** @throws Error that names the sink, when the column holds something else */
export const sinkSettings = ({ id, kind, settings }: Pick<AuditSinkTable, 'id' | 'kind' | 'settings'>): Settings =>
  readSettings(STORED_SETTINGS, kind, settings, `audit sink ${id}`);
