/** The kinds of sinks. config-file/audit-sinks.ts has the settings of each. */

import { type SettingsOf, SINK_KINDS, type SinkKindName, STORED_SETTINGS } from '../config-file/audit-sinks.ts';
import { readStored } from '../store/stored-json.ts';
import { file } from './file.ts';
import { otlp } from './otlp.ts';
import { s3 } from './s3.ts';
import type { Batch, Delivered, Delivering, Sink } from './sink.ts';
import { webhook } from './webhook.ts';

const KINDS: { readonly [Kind in SinkKindName]: Sink<SettingsOf<Kind>> } = { webhook, otlp, s3, file };

/** A sink as stored: settings are JSON text. */
export type Stored = Omit<Delivering<unknown>, 'settings'> & { kind: string; settings: string };

/** Delivers a batch, or without one tests whether the sink would accept it. @throws Error when the stored settings cannot be read */
export async function deliverTo({ kind, settings, ...rest }: Stored, batch?: Batch): Promise<Delivered> {
  const name = SINK_KINDS.find((one) => one === kind);
  if (name === undefined)
    return { kind: 'failed', why: `This version of agent-broker knows no sinks of kind ${kind}.` };
  return await by(name, settings, rest, batch);
}

function by<Kind extends SinkKindName>(
  kind: Kind,
  text: string,
  rest: Omit<Delivering<unknown>, 'settings'>,
  batch: Batch | undefined,
): Promise<Delivered> {
  const form = STORED_SETTINGS[kind] as unknown as Parameters<typeof readStored<SettingsOf<Kind>>>[0];
  const delivering = { ...rest, settings: readStored(form, text, `settings of audit sink ${rest.sinkId}`) };
  const sink: Sink<SettingsOf<Kind>> = KINDS[kind];
  return batch ? sink.deliver(delivering, batch) : sink.test(delivering);
}
