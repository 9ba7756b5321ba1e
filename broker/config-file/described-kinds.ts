/** The kinds of channels as data, from which the console generates its forms: a new kind here needs no change there. */
import { z } from 'zod';
import { CHANNEL_KINDS, type ChannelKindName, KINDS } from './channels.ts';

export type DescribedKind = {
  kind: ChannelKindName;
  /** JSON Schema of an object. */
  settings: Record<string, unknown>;
  /** `made`: the broker generates a missing one. */
  secret: 'made' | 'needed' | 'optional';
  secretIs: string;
};

export function describedKinds(): DescribedKind[] {
  return CHANNEL_KINDS.map((kind) => {
    const { settings, secret, secretIs } = KINDS[kind];
    const schema = z.toJSONSchema(z.strictObject(settings), { io: 'input', unrepresentable: 'any' });
    return { kind, settings: schema, secret, secretIs };
  });
}
